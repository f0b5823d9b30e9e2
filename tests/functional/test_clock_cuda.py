"""No lie about time gains anything; skipped without a GPU. docs/clock.md has the outcomes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.builders import ROOT
from tests.functional.audit_command import audit
from tests.functional.clock_lies import HONEST, LIES, RETURNS, Lie
from tests.functional.test_evaluate_cuda import why_not

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_not() is not None, reason=f"needs a GPU: {why_not()}"),
]

GEMM = "gemm_n4096_k4096"
_GAIN = 1.03
# what a kernel on another stream than the callee's first one is sooner, in milliseconds
_SOONER = 0.0025
_EQUAL = 0.025


def solution(name: str, source: str, passes_outputs: bool = True) -> dict[str, Any]:
    spec = {
        "language": "python",
        "target_hardware": ["cuda"],
        "entry_point": "main.py::run",
        "destination_passing_style": passes_outputs,
    }
    return {
        "name": name,
        "definition": GEMM,
        "author": "tester",
        "spec": spec,
        "sources": [{"path": "main.py", "content": source}],
    }


def workload(m: int) -> dict[str, Any]:
    inputs = {"A": {"type": "random"}, "B": {"type": "random"}}
    about = {"uuid": f"11111111-1111-4111-8111-{m:012}", "axes": {"M": m}}
    nothing = {"solution": None, "evaluation": None}
    return {"definition": GEMM, "workload": {**about, "inputs": inputs}, **nothing}


def timed(
    folder: Path, sizes: tuple[int, ...], *values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return name → verdict of solutions that are timed on workloads of some sizes."""
    root = folder / "data"
    for path, text in (
        (
            f"definitions/gemm/{GEMM}.json",
            (ROOT / f"definitions/gemm/{GEMM}.json").read_text(),
        ),
        (
            f"workloads/gemm/{GEMM}.jsonl",
            "".join(json.dumps(workload(m)) + "\n" for m in sizes),
        ),
    ):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(text)
    chosen = []
    for number, value in enumerate(values):
        path = folder / f"{number:03}.json"
        path.write_text(json.dumps(value))
        chosen.append(path)
    found = folder / "output"
    options = ("--device", "cuda", "--timing", "--workloads", "dataset")
    options = (*options, "--dataset", root, "--output", found, "--timeout", "20")
    _, out, err = audit(*chosen, *options, command="evaluate")
    assert out, err
    results = json.loads((found / "results.json").read_text())
    return {v["solution"]: v for v in results["solutions"]}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    values = [solution(lie.name, lie.source, lie.passes_outputs) for lie in LIES]
    honest = [solution(name, HONEST) for name in ("first", "last")]
    folder = tmp_path_factory.mktemp("lies")
    return timed(folder, (256,), honest[0], *values, honest[1])


def milliseconds(verdict: Mapping[str, Any]) -> float:
    (case,) = (case for case in verdict["cases"] if case["timing"])
    latency: float = case["timing"]["latency_ms"]
    return latency


@pytest.mark.parametrize("lie", LIES, ids=[lie.name for lie in LIES])
def test_lie_is_refused_or_gains_nothing(lie: Lie, verdicts: dict[str, Any]) -> None:
    found = verdicts[lie.name]
    if found["verdict"] == "PASSED":
        gains_nothing(lie, found, verdicts)
    else:
        assert found["reason"]


def gains_nothing(lie: Lie, found: dict[str, Any], verdicts: dict[str, Any]) -> None:
    """Check that a lie that passed is no faster than the honest solution."""
    honest = min(milliseconds(verdicts[name]) for name in ("first", "last"))
    assert _GAIN * milliseconds(found) + _SOONER >= honest, lie.by
    # the rivals are as fast beside it
    (case,) = (case for case in found["cases"] if case["timing"])
    (other,) = (case for case in verdicts["first"]["cases"] if case["timing"])
    name = "production_latency_ms"
    assert case["timing"][name] <= 1.1 * other["timing"][name] + _SOONER


def test_cublas_is_as_fast_as_cublas(tmp_path: Path) -> None:
    sizes = (8, 256, 1024, 2379, 8192)
    values = solution("passed", HONEST), solution("returned", RETURNS, False)
    for verdict in timed(tmp_path, sizes, *values).values():
        assert verdict["verdict"] == "PASSED", verdict["reason"]
        for case in verdict["cases"]:
            timing = case["timing"]
            assert timing["speedup_over_production"] == pytest.approx(1.0, abs=_EQUAL)
            assert 0.0 < timing["fraction_of_light"] < 1.0
