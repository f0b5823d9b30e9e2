"""What timing does on the judge's side, which needs no GPU."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch

from generator.evaluation.confined import Answer
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
