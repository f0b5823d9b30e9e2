"""No lie about time gains anything; skipped without a GPU. docs/clock.md has the outcomes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.builders import ROOT
from tests.functional.audit_command import audit
from tests.functional.clock_lies import HONEST, LIES, RETURNS, TAKES, Lie
from tests.functional.clock_lies_of_drivers import LONG, OF_DRIVERS, ON_CPU
from tests.functional.clock_lies_of_engines import OF_ENGINES
from tests.functional.clock_lies_of_strangers import OF_STRANGERS
from tests.functional.test_evaluate_cuda import why_not

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_not() is not None, reason=f"needs a GPU: {why_not()}"),
]

GEMM, NORM = "gemm_n4096_k4096", "rmsnorm_h4096"
FLASHINFER = """
import flashinfer

def run(hidden_states, weight, output):
    flashinfer.norm.rmsnorm(hidden_states, weight, 1e-5, out=output)
"""
TRITON = ROOT / f"solutions/examples/rmsnorm/{NORM}/{NORM}_triton.json"
_GAIN = 1.03
# for a call; a first one of FlashInfer compiles
_SECONDS = {GEMM: "15", NORM: "120"}
# lies that are timed by one command
_GROUP = 10
EVERY = (*LIES, *OF_ENGINES, *OF_DRIVERS, *OF_STRANGERS)
LONG_SIZE, FEW_ROWS = 28_672, 7


def solution(
    name: str, source: str, passes_outputs: bool = True, definition: str = GEMM
) -> dict[str, Any]:
    spec = {
        "language": "python",
        "target_hardware": ["cuda"],
        "entry_point": "main.py::run",
        "destination_passing_style": passes_outputs,
    }
    return {
        "name": name,
        "definition": definition,
        "author": "tester",
        "spec": spec,
        "sources": [{"path": "main.py", "content": source}],
    }


def workload(definition: str, length: int) -> dict[str, Any]:
    axis, names = _WORKLOADS[definition]
    about = {"uuid": f"11111111-1111-4111-8111-{length:012}", "axes": {axis: length}}
    inputs = {name: {"type": "random"} for name in names}
    nothing = {"solution": None, "evaluation": None}
    return {
        "definition": definition,
        "workload": {**about, "inputs": inputs},
        **nothing,
    }


_WORKLOADS = {
    GEMM: ("M", ("A", "B")),
    NORM: ("batch_size", ("hidden_states", "weight")),
}


def written(
    folder: Path, sizes: tuple[int, ...], *values: Mapping[str, Any]
) -> tuple[Path, list[Path]]:
    """Write a dataset with workloads of sizes, and a definition's solutions.

    Returns the dataset's root and the solutions' files.
    """
    root, definition = folder / "data", values[0]["definition"]
    op_type = definition.split("_")[0]
    declared = f"definitions/{op_type}/{definition}.json"
    lines = [json.dumps(workload(definition, length)) + "\n" for length in sizes]
    for path, text in (
        (declared, (ROOT / declared).read_text()),
        (f"workloads/{op_type}/{definition}.jsonl", "".join(lines)),
    ):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(text)
    chosen = []
    for number, value in enumerate(values):
        path = folder / f"{number:03}.json"
        path.write_text(json.dumps(value))
        chosen.append(path)
    return root, chosen


def timed(
    folder: Path, sizes: tuple[int, ...], *values: Mapping[str, Any], starts: int = 1
) -> dict[str, Any]:
    """Return name → verdict of a definition's solutions, timed on workloads of sizes."""
    root, chosen = written(folder, sizes, *values)
    found = folder / "output"
    options: tuple[str | Path, ...] = (
        *("--device", "cuda", "--timing", "--workloads", "dataset"),
        *("--dataset", root, "--output", found, "--starts", str(starts)),
        *("--timeout", _SECONDS[values[0]["definition"]]),
    )
    _, out, err = audit(*chosen, *options, command="evaluate")
    assert out, err
    results = json.loads((found / "results.json").read_text())
    return {v["solution"]: v for v in results["solutions"]}


class Verdicts:
    """Time lies a group at a time, between honest solutions, when one is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[int, dict[str, Any]] = {}

    def of(self, lie: Lie) -> dict[str, Any]:
        """Return name → verdict of a lie's group."""
        group = EVERY.index(lie) // _GROUP
        if group not in self._known:
            lies = EVERY[group * _GROUP : (group + 1) * _GROUP]
            values = [
                solution(one.name, one.source, one.passes_outputs) for one in lies
            ]
            first, last = (solution(name, HONEST) for name in ("first", "last"))
            folder = self._folder / str(group)
            self._known[group] = timed(folder, (256,), first, *values, last)
        return self._known[group]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    return Verdicts(tmp_path_factory.mktemp("lies"))


def milliseconds(verdict: Mapping[str, Any]) -> float:
    (case,) = (case for case in verdict["cases"] if case["timing"])
    latency: float = case["timing"]["latency_ms"]
    return latency


@pytest.mark.parametrize("lie", EVERY, ids=[lie.name for lie in EVERY])
def test_lie_is_refused_or_gains_nothing(lie: Lie, verdicts: Verdicts) -> None:
    group = verdicts.of(lie)
    found = group[lie.name]
    if found["verdict"] != "PASSED":
        assert found["reason"]
    elif any(case["timing"] for case in found["cases"]):
        gains_nothing(lie, found, group)
    else:
        assert "not timed" in " ".join(found["notes"])


def gains_nothing_over(
    lie: Lie, verdicts: dict[str, Any], honest: tuple[str, ...]
) -> None:
    """Check that a lie is not faster than honest solutions, where it has times."""
    found = verdicts[lie.name]
    if any(case["timing"] for case in found["cases"]):
        least = min(milliseconds(verdicts[name]) for name in honest)
        assert _GAIN * milliseconds(found) >= least, lie.by


def gains_nothing(lie: Lie, found: dict[str, Any], verdicts: dict[str, Any]) -> None:
    """Check that a lie that passed is no faster than the honest solution."""
    gains_nothing_over(lie, verdicts, ("first", "last"))
    # the rivals are as fast beside it
    (case,) = (case for case in found["cases"] if case["timing"])
    (other,) = (case for case in verdicts["first"]["cases"] if case["timing"])
    name = "production_latency_ms"
    assert case["timing"][name] <= 1.1 * other["timing"][name]


def test_a_solution_that_takes_all_memory_gains_nothing(tmp_path: Path) -> None:
    found = timed(tmp_path, (256,), solution(TAKES.name, TAKES.source))[TAKES.name]
    timings = [case["timing"] for case in found["cases"] if case["timing"]]
    print(found["verdict"], found["reason"], found["notes"], timings)
    assert found["verdict"] != "PASSED" or all(
        timing["speedup_over_production"] <= _GAIN for timing in timings
    ), TAKES.by


def test_an_answer_before_long_work_is_done_gains_nothing(tmp_path: Path) -> None:
    values = [solution(lie.name, lie.source) for lie in LONG]
    found = timed(tmp_path, (LONG_SIZE,), solution("first", HONEST), *values)
    for lie in LONG:
        gains_nothing_over(lie, found, ("first",))


def test_what_the_cpu_computes_meanwhile_is_at_the_resolution(tmp_path: Path) -> None:
    pytest.importorskip("flashinfer")
    value = solution(ON_CPU.name, ON_CPU.source, definition=NORM)
    found = timed(tmp_path, (FEW_ROWS,), value)[ON_CPU.name]
    timings = [case["timing"] for case in found["cases"] if case["timing"]]
    assert found["verdict"] != "PASSED" or not any(t["resolved"] for t in timings)


def check_equal(ratio: float, milliseconds: float) -> None:
    """Check a speedup of several starts over equal work."""
    assert ratio == pytest.approx(1.0, abs=0.02 if milliseconds > 0.02 else 0.05)


def check_stated(timing: Mapping[str, Any]) -> None:
    """Check that a speedup over equal work is off by what it says, a few times at most."""
    off = abs(timing["speedup_over_production"] - 1.0)
    assert off <= 2.0 * timing["speedup_over_production_error"]


def test_cublas_is_as_fast_as_cublas(tmp_path: Path) -> None:
    sizes = (8, 256, 1024, 2379, 8192)
    value = solution("passed", HONEST)
    found = timed(tmp_path, sizes, value, starts=8)["passed"]
    assert found["verdict"] == "PASSED", found["reason"]
    for case in found["cases"]:
        timing = case["timing"]
        assert len(timing["by_start"]) == timing["starts"] == 8
        check_equal(timing["speedup_over_production"], timing["latency_ms"])
        check_stated(timing)


def test_one_start_of_cublas_is_off_by_what_it_says(tmp_path: Path) -> None:
    sizes = (8, 256, 1024, 2379, 8192)
    values = solution("passed", HONEST), solution("returned", RETURNS, False)
    for verdict in timed(tmp_path, sizes, *values).values():
        assert verdict["verdict"] == "PASSED", verdict["reason"]
        for case in verdict["cases"]:
            timing = case["timing"]
            check_stated(timing)
            assert 0.0 < timing["fraction_of_light"] < 1.0
            # by the card itself, which is below its datasheet
            measured = timing["fraction_of_measured"]
            assert timing["fraction_of_light"] < measured < 1.3


def test_norms_are_as_fast_as_themselves(tmp_path: Path) -> None:
    pytest.importorskip("flashinfer")
    triton = json.loads(TRITON.read_text())
    values = [{**triton, "name": name} for name in ("first", "last")]
    flashinfer = solution("flashinfer", FLASHINFER, definition=NORM)
    sizes = (256, 4096, 11832)
    found = timed(tmp_path, sizes, values[0], flashinfer, values[1], starts=8)
    for verdict in found.values():
        assert verdict["verdict"] == "PASSED", verdict["reason"]
    for case in found["flashinfer"]["cases"]:
        timing = case["timing"]
        check_equal(timing["speedup_over_production"], timing["latency_ms"])
    for one, other in zip(found["first"]["cases"], found["last"]["cases"], strict=True):
        figures = [case["timing"]["speedup_over_production"] for case in (one, other)]
        check_equal(figures[0] / figures[1], one["timing"]["latency_ms"])
