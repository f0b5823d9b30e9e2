"""What timing does on the judge's side, which needs no GPU."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
import torch

from generator.evaluation import timing
from generator.evaluation.session import Answer
from generator.evaluation.timing import _Sitting
from generator.evaluation.verdict import REWARD_HACK, Refused


def sitting(idle: Sequence[Answer] = ()) -> _Sitting:
    made = _Sitting.__new__(_Sitting)
    made._draw, made._idle, made._bytes = random.Random(1), idle, 1024
    return made


@pytest.mark.parametrize("shape", [(64,), (1, 64), (8, 16), (2, 3, 4)])
def test_values_change_and_stay_values(shape: tuple[int, ...]) -> None:
    given = torch.randn(shape, dtype=torch.float32).to(torch.bfloat16)
    changed = sitting()._changed("x", given.clone())
    assert not torch.equal(changed, given)
    # exchanged bytes would be other numbers
    assert torch.equal(
        changed.float().flatten().sort().values, given.float().flatten().sort().values
    )


def test_indices_and_scales_stay() -> None:
    indices, scale = torch.arange(8), torch.randn(8)
    assert sitting()._changed("kv_indices", indices) is indices
    assert torch.equal(sitting()._changed("w_scale", scale.clone()), scale)


def answer(said: float, seconds: float) -> Answer:
    return Answer(times={"milliseconds": said, "rest": 0.02}, seconds=seconds)


@pytest.mark.parametrize("said", [1e-4, 20.0])
def test_clock_that_the_judge_contradicts_is_refused(said: float) -> None:
    made = sitting([answer(0.0, 0.001)])
    with pytest.raises(Refused) as refused:
        made._check_clock([answer(said, 0.012)] * 20)
    assert refused.value.verdict == REWARD_HACK


def test_one_call_that_took_less_is_no_contradiction() -> None:
    made = sitting([answer(0.0, 0.001)])
    made._check_clock([*[answer(9.0, 0.012)] * 20, answer(5.0, 0.008)])


class Clock:
    """A clock that notes who was called, each of whom takes a time of its own."""

    def __init__(self, *_: object) -> None:
        self.times = {"reference": 4.0, "slow": 3.0, "fast": 2.0}

    def around(self, call):
        name = call()
        return {"milliseconds": self.times[name], "rest": 0.0}, name


def round_of(trace: list[str]) -> SimpleNamespace:
    def reference(x):
        # what a call writes to its inputs, no other sees
        assert x.tolist() == [1.0, 2.0]
        x.zero_()
        trace.append("reference")
        return "reference"

    trial = SimpleNamespace(inputs={"x": torch.tensor([1.0, 2.0]), "eps": 1e-6})
    return SimpleNamespace(trial=trial, run=lambda x, eps: reference(x))


@pytest.fixture
def on_cpu(monkeypatch):
    """Have what is timed on a GPU called here."""
    monkeypatch.setattr(timing, "Clock", Clock)
    monkeypatch.setattr(timing, "_clocks", dict)
    copied = lambda v, _: v.clone() if isinstance(v, torch.Tensor) else v
    monkeypatch.setattr(timing, "fresh", copied)


def kernels(trace, *names):
    def of(name):
        def kernel(x, eps):
            x += 1.0
            trace.append(name)
            if name == "broken":
                raise RuntimeError("no kernel for this device")
            return name

        return name, kernel

    return lambda one: [of(name) for name in names]


def test_solution_reference_and_kernels_are_called_in_turn(on_cpu, monkeypatch):
    trace: list[str] = []
    monkeypatch.setattr(timing, "_production", kernels(trace, "slow", "broken", "fast"))
    made = sitting([answer(0.0, 0.001)])
    made._one = round_of(trace)
    made._until_stable = lambda: True

    def called(is_judged):
        trace.append("solution")
        return Answer(times={"milliseconds": 1.0, "rest": 0.0}, seconds=0.0025)

    made._called = called
    found = made.timing()
    begun = trace.index("solution")
    assert trace[:begun].count("broken") == 1
    turn = ["solution", "reference", "slow", "fast"]
    assert trace[begun:] == turn * timing.ITERATIONS
    assert (found["speedup_factor"], found["speedup_over_production"]) == (4.0, 2.0)
    assert found["production"] == "fast"


def test_without_a_kernel_there_is_the_reference_alone(on_cpu, monkeypatch):
    trace: list[str] = []
    monkeypatch.setattr(timing, "_production", kernels(trace, "broken"))
    (rival,) = timing._rivals(round_of(trace), Clock())
    assert rival.name == ""
    assert rival.figures == []
