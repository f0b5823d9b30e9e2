"""Timed calls of solutions in their sandbox, on a CPU: all of the clock but the GPU."""

from __future__ import annotations

import gc
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.dataset.paths import DatasetFile
from generator.evaluation.clock import timing_session
from generator.evaluation.clock.telemetry import Sample, Telemetry
from generator.evaluation.clock.timed_calls import (
    CalleeLink,
    CallTimes,
    TimedCalls,
)
from generator.evaluation.evaluate import EvaluationRequest, _arguments
from generator.evaluation.solution import Solution
from generator.evaluation.task import evaluate
from tests.functional.audit_command import NORM, dataset
from tests.functional.hacks import RIGHT
from tests.functional.test_evaluate_hacks import HONEST, solution

pytestmark = pytest.mark.slow

WRITES = f"{RIGHT}\ndef run(x, weight, out):\n    out.copy_(norm(x, weight))\n"
COUNTS = "CALLS = [0]\n"
LIES = {
    # the first calls are honest: nobody is refused before the clock runs
    "stops": f"{RIGHT}{COUNTS}\ndef run(x, weight, out):\n    CALLS[0] += 1\n"
    "    if CALLS[0] < 12:\n        out.copy_(norm(x, weight))\n",
    "late": f"{RIGHT}{COUNTS}\nimport threading\n\ndef run(x, weight, out):\n"
    "    CALLS[0] += 1\n    work = lambda: out.copy_(norm(x, weight))\n"
    "    if CALLS[0] < 12:\n        work()\n"
    "    else:\n        threading.Timer(0.5, work).start()\n",
    "again": f"{RIGHT}\nOLD = {{}}\n\ndef run(x, weight, out):\n"
    "    if x.shape not in OLD:\n        OLD[x.shape] = norm(x, weight)\n"
    "    out.copy_(OLD[x.shape])\n",
    "spoils": f"{RIGHT}{COUNTS}\ndef run(x, weight, out):\n    CALLS[0] += 1\n"
    "    out.copy_(norm(x, weight))\n    if CALLS[0] > 12:\n        x.zero_()\n",
}


class Link:
    def at(self, *_: Any, **__: Any) -> None:
        pass

    def say(self, _: Any) -> None:
        pass


def timed(root: Path, *values: dict[str, Any], starts: int = 1) -> dict[str, Any]:
    """Return name → verdict of solutions that are timed on one workload."""
    dataset(root)
    path = root / f"workloads/rmsnorm/{NORM}.jsonl"
    path.parent.mkdir(parents=True)
    inputs = {"hidden_states": {"type": "random"}, "weight": {"type": "random"}}
    workload = {"uuid": "u", "axes": {"batch_size": 64}, "inputs": inputs}
    nothing = {"solution": None, "evaluation": None}
    path.write_text(json.dumps({"definition": NORM, "workload": workload, **nothing}))
    found = [Solution(value, f"{value['name']}.json") for value in values]
    file = DatasetFile("rmsnorm", NORM, f"definitions/rmsnorm/{NORM}.json")
    asks = EvaluationRequest(
        workloads="dataset", timing=True, timeout=30.0, starts=starts
    )
    about = {"root": str(root), "is_last": True, "lanes": 1, "sharing": 1 << 10}
    task = {**_arguments(file, found, asks, 5), **about}
    with warnings.catch_warnings():
        # the task runs in a process of its own elsewhere, whose end closes all
        warnings.simplefilter("ignore", ResourceWarning)
        judged = evaluate(task, Link())["verdicts"]
        gc.collect()
    return {v["solution"]: v for v in judged}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    values = [solution("returns", HONEST), solution("writes", WRITES, True)]
    values += [solution(name, source, True) for name, source in LIES.items()]
    return timed(tmp_path_factory.mktemp("dataset"), *values)


@pytest.mark.parametrize("name", ["returns", "writes"])
def test_honest_solution_is_timed(name: str, verdicts: dict[str, Any]) -> None:
    found = verdicts[name]
    assert found["verdict"] == "PASSED", found["reason"]
    (case,) = found["cases"]
    timing = case["timing"]
    assert timing["latency_ms"] > 0.0
    assert timing["iterations"] >= 20
    assert timing["fresh"]
    assert set(timing["rivals"]) == {"reference"}


@pytest.mark.parametrize("name", list(LIES))
def test_lie_is_refused(name: str, verdicts: dict[str, Any]) -> None:
    wrong = ("INCORRECT_NUMERICAL", "REWARD_HACK")
    assert verdicts[name]["verdict"] in wrong, verdicts[name]


def test_what_only_timed_calls_do_is_seen_there(verdicts: dict[str, Any]) -> None:
    for name in ("stops", "late", "spoils"):
        assert "timed call" in verdicts[name]["reason"], verdicts[name]


def test_gpu_that_is_slowed_down_is_no_fault_of_a_solution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot = Sample(reasons=0x40, sm_mhz=900)
    monkeypatch.setattr(Telemetry, "sample", lambda _: hot)
    monkeypatch.setattr(timing_session, "_MOST", 3)
    found = timed(tmp_path, solution("honest", HONEST))["honest"]
    assert found["verdict"] == "PASSED"
    assert [case["timing"] for case in found["cases"]] == [None]
    (note,) = found["notes"]
    assert "not timed: the GPU was slowed down throughout (hw thermal" in note


def test_reference_is_called_on_memory_that_no_solution_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, is_left = TimedCalls.call, []

    def call(self: TimedCalls, link: CalleeLink, *how: Any) -> CallTimes:
        before = self.memory.bytes.clone()
        times = usual(self, link, *how)
        if link.memory is not self.memory:
            is_left.append(torch.equal(self.memory.bytes, before))
        return times

    monkeypatch.setattr(TimedCalls, "call", call)
    found = timed(tmp_path, solution("honest", HONEST))["honest"]
    assert set(found["cases"][0]["timing"]["rivals"]) == {"reference"}
    assert len(is_left) > 20
    assert all(is_left)


def test_solution_that_shortens_files_ends_no_judge(tmp_path: Path) -> None:
    shortens = f"""{RIGHT}
import os

def run(x, weight, out):
    out.copy_(norm(x, weight))
    for file in map(int, os.listdir("/proc/self/fd")):
        try:
            if "memfd" in os.readlink(f"/proc/self/fd/{{file}}"):
                os.ftruncate(file, 0)
        except OSError:
            pass
"""
    found = timed(tmp_path, solution("shortens", shortens, True))["shortens"]
    assert found["verdict"] == "PASSED", found["reason"]
    assert found["cases"][0]["timing"]
