"""A GPU whose memory others have: what is compared elsewhere, and what is judged anew."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from generator.dataset.paths import DatasetFile
from generator.evaluation import room, task
from generator.evaluation.confined import Confinement
from generator.evaluation.room import (
    alone_if_short,
    compare_with_room,
    is_short,
    where_room,
)
from generator.evaluation.rounds import rounds_of
from generator.evaluation.session import Allowed, NotStarted
from generator.evaluation.solution import Solution
from generator.evaluation.task import _Bench
from generator.evaluation.verdict import (
    JUDGE_ERROR,
    OUT_OF_MEMORY,
    PASSED,
    RUNTIME_ERROR,
    CaseVerdict,
    Refused,
)
from kernel_judge.comparison.tolerance import Tolerance
from tests.builders import CPU, loaded

# a device that no machine lacks
META = torch.device("meta")
_TOLERANCE = Tolerance(rtol=1e-5, atol=1e-5)


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the devices on which values are compared, in order."""
    seen: list[str] = []

    def compare(actual: Any, expected: Any, *_: Any, **__: Any) -> Any:
        seen.append(getattr(actual, "device", CPU).type)
        if seen[-1] == "meta":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return SimpleNamespace(verdict="PASSED")

    monkeypatch.setattr(room, "compare", compare)
    return seen


@pytest.mark.parametrize(
    ("device", "free", "expected"),
    [
        ("cpu", 0, ["cpu"]),
        # there was room, until somebody else took it
        ("meta", 10**6, ["meta", "cpu"]),
        ("meta", 100, ["cpu"]),
        ("meta", None, ["cpu"]),
    ],
)
def test_tensors_are_compared_on_the_gpu_if_that_has_room(
    monkeypatch: pytest.MonkeyPatch,
    places: list[str],
    device: str,
    free: int | None,
    expected: list[str],
) -> None:
    monkeypatch.setattr(room, "available_bytes", lambda device: free)
    values = torch.ones(8), torch.ones(8)
    found = compare_with_room(*values, _TOLERANCE, torch.device(device))
    assert found.verdict == "PASSED"
    assert places == expected


def test_what_is_no_tensor_is_compared_as_it_is() -> None:
    found = compare_with_room(3.0, torch.ones(1), _TOLERANCE, CPU)
    assert found.findings == ("a tensor is expected, got float",)


def test_an_error_of_another_kind_is_not_tried_again() -> None:
    def broken(place: torch.device) -> None:
        raise RuntimeError(f"an illegal address on {place}")

    with pytest.raises(RuntimeError, match="meta"):
        where_room(broken, META)


def test_an_oracle_without_room_computes_on_the_cpu() -> None:
    asked = rounds_of(loaded("rmsnorm_h128"), [], Path(), CPU, 5)
    one = asked.rounds[0][1][0]
    expected = one.expected
    oracle = one.subject.op.oracle
    assert oracle is not None
    seen = []

    def full(definition: Any, inputs: Any) -> Any:
        seen.append(inputs["hidden_states"].device.type)
        if seen[-1] == "meta":
            raise torch.OutOfMemoryError("CUDA out of memory")
        return oracle(definition, inputs)

    subject = replace(one.subject, op=replace(one.subject.op, oracle=full))
    again = replace(one, subject=subject, device=META)
    assert torch.equal(again.expected[0], expected[0])
    assert seen == ["meta", "cpu"]


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("lacks", [True, False])
def test_only_what_ran_out_beside_others_is_tried_alone(
    shares: bool, lacks: bool
) -> None:
    tries: list[bool] = []

    def attempt(is_alone: bool) -> tuple[int, bool]:
        tries.append(is_alone)
        return len(tries), lacks

    assert alone_if_short(attempt, shares=shares) == len(tries)
    assert tries == ([False, True] if shares and lacks else [False])


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (NotStarted("its process could not start: CUDA error: out of memory"), True),
        (_caused(ValueError("its reference"), Refused(OUT_OF_MEMORY, "")), True),
        (_caused(ValueError("its reference"), Refused(RUNTIME_ERROR, "")), False),
        (KeyError("out of memory"), False),
    ],
)
def test_errors_of_memory_are_told_from_others(
    error: Exception, expected: bool
) -> None:
    assert is_short(error) == expected


def test_a_process_that_can_not_start_is_no_fault_of_its_solution() -> None:
    if torch.cuda.is_available():
        pytest.skip("pytorch: it starts on a machine with a GPU")
    starts = pytest.raises(NotStarted, match=r"could not start: .*CUDA")
    with closing(Confinement("cuda", Allowed())) as confinement, starts:
        confinement.open()


def _full(*_: Any) -> Any:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 120 MiB")


def _short(*_: Any) -> Any:
    return [CaseVerdict("one-row", OUT_OF_MEMORY, "CUDA out of memory")]


@pytest.mark.parametrize("first", [_full, _short])
@pytest.mark.parametrize(
    ("second", "verdict"),
    [(lambda *_: [CaseVerdict("one-row", PASSED)], PASSED), (_full, JUDGE_ERROR)],
)
def test_a_solution_is_judged_anew_with_the_gpu_alone(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    first: Callable[..., Any],
    second: Callable[..., Any],
    verdict: str,
) -> None:
    monkeypatch.setattr(task, "missing", lambda solution, device: None)
    bench, alone = object.__new__(_Bench), []

    def judged(*given: Any) -> Any:
        alone.append(bench._is_alone)
        return (second if bench._is_alone else first)(*given)

    part = SimpleNamespace(close=lambda: None)
    vars(bench).update(
        {"_task": {"device": "cuda"}, "_gpu": "0", "_is_alone": False, "_field": None},
        _confined=part,
        _reference=part,
        _judged=judged,
        _file=DatasetFile("rmsnorm", "rmsnorm_h128", "rmsnorm_h128.json"),
    )
    found = bench.verdict(Solution({"name": "s", "author": "a"}, "s.json"))
    assert found.verdict == verdict
    assert alone == [False, True]
    assert not bench._is_alone
    if verdict == JUDGE_ERROR:
        assert found.reason.startswith("OutOfMemoryError: CUDA out of memory.")
