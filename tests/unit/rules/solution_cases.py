"""One case for each rule on solutions and traces."""

from __future__ import annotations

from typing import Any

from tests.unit.conftest import DEFINITION
from tests.unit.rules.made import (
    SOLUTION_PATH,
    TRACES,
    Break,
    solution,
    source_of,
    trace,
)
from tests.unit.rules.more_cases import Case

S = SOLUTION_PATH.format(author="baseline", name="fast")
REFERENCE_BODY = DEFINITION["reference"].replace("alpha=1.0", "alpha, C")


def _solution(**changes: Any) -> Break:
    return lambda d, w: solution(d, **changes)


def _trace(**changes: Any) -> Break:
    return lambda d, w: trace(d, **changes)


def _spec(**changes: Any) -> dict[str, Any]:
    return {
        "language": "python",
        "target_hardware": ["cuda"],
        "entry_point": "main.py::run",
        **changes,
    }


def _two_solutions(d: Any, w: Any) -> None:
    solution(d)
    solution(d, author="alice")


CASES: dict[str, Case] = {
    "solution-orphan": (
        _solution(at="solutions/baseline/gemm/gone/fast.json"),
        "solutions/baseline/gemm/gone/fast.json",
        "",
        None,
    ),
    "solution-path": (
        _solution(author="alice", at=S),
        S,
        "/author",
        None,
    ),
    "solution-duplicate": (_two_solutions, S, "/name", None),
    "solution-source-path": (
        _solution(
            sources=[
                *source_of("def run(A, B, alpha, C):\n    import flashinfer\n"),
                {"path": "../x.py", "content": ""},
            ]
        ),
        S,
        "/sources/1/path",
        None,
    ),
    "solution-syntax": (
        _solution(sources=source_of("import torch\ndef run(:")),
        S,
        "/sources/0/content",
        2,
    ),
    "solution-hidden": (
        _solution(
            sources=source_of(
                "import flashinfer\n# \u202e a\ndef run(A, B, alpha, C):\n    pass\n"
            )
        ),
        S,
        "/sources/0/content",
        2,
    ),
    "solution-entry-point": (
        _solution(spec=_spec(entry_point="main.py::walk")),
        S,
        "/spec/entry_point",
        None,
    ),
    "solution-parameters": (
        _solution(sources=source_of("import sglang\ndef run(A):\n    pass\n")),
        S,
        "/spec/entry_point",
        2,
    ),
    "baseline-repeats-reference": (
        _solution(sources=source_of(REFERENCE_BODY)),
        S,
        "/sources/0/content",
        None,
    ),
    "baseline-no-kernel": (
        _solution(
            sources=source_of("import torch\ndef run(A, B, alpha, C):\n    pass\n")
        ),
        S,
        "/sources",
        None,
    ),
    "trace-place": (
        _trace(at="traces/gemm/gemm_n8_k4.jsonl"),
        "traces/gemm/gemm_n8_k4.jsonl",
        "",
        None,
    ),
    "trace-orphan": (
        _trace(at="traces/baseline/gemm/gone.jsonl"),
        "traces/baseline/gemm/gone.jsonl",
        "",
        None,
    ),
    "trace-definition": (_trace(definition="other"), TRACES, "/definition", 1),
    "trace-incomplete": (_trace(evaluation=None), TRACES, "/evaluation", 1),
    "trace-workload": (
        _trace(workload={"axes": {"M": 4}}),
        TRACES,
        "/workload/axes",
        1,
    ),
    "trace-solution": (_trace(solution="gone"), TRACES, "/solution", 1),
    "trace-author": (
        _trace(at="traces/bob/gemm/gemm_n8_k4.jsonl"),
        "traces/bob/gemm/gemm_n8_k4.jsonl",
        "/solution",
        1,
    ),
    "trace-duplicate": (_trace(times=2), TRACES, "", 2),
    "trace-coverage": (
        lambda d, w: (trace(d), d.workloads(w(), w(uuid="two", axes={"M": 4}))),
        TRACES,
        "",
        None,
    ),
    "trace-baseline-failed": (
        _trace(evaluation={"status": "TIMEOUT"}),
        TRACES,
        "/evaluation/status",
        1,
    ),
    "trace-numbers": (
        _trace(evaluation={"performance": {"latency_ms": -1}}),
        TRACES,
        "/evaluation/performance/latency_ms",
        1,
    ),
    "trace-no-measurement": (
        _trace(evaluation={"performance": None}),
        TRACES,
        "/evaluation",
        1,
    ),
    "loader-solution": (
        _solution(spec=_spec(target_hardware=[])),
        "solutions/baseline/gemm/gemm_n8_k4/fast.json",
        "/spec/target_hardware",
        None,
    ),
    "loader-trace": (_trace(evaluation={"log": None}), TRACES, "/evaluation/log", 1),
}
