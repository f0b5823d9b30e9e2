"""How far two outputs are apart: what is farthest is judged."""

from __future__ import annotations

import math

import pytest
import torch

from generator.evaluation.clock.outputs import distance

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_distance_is_a_share_of_the_squares(dtype: torch.dtype) -> None:
    other = torch.tensor([3.0, 4.0, 0.0], dtype=dtype)
    one = torch.tensor([3.0, 4.0, 0.5], dtype=dtype)
    assert distance(other, other) == 0.0
    assert distance(one, other) == pytest.approx(0.01, rel=1e-3)
    # of nothing anything is far
    assert distance(one, torch.zeros_like(one)) > 1e20


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_in_one_of_both_counts_as_a_share(value: float) -> None:
    other = torch.ones(4)
    one = other.clone()
    one[0] = value
    assert distance(one, other) == pytest.approx(0.25)
    assert distance(other, one) == pytest.approx(0.25)
    assert distance(one, one) == 0.0


def test_large_half_precision_is_no_infinity() -> None:
    other = torch.full((4,), 6e4, dtype=torch.float16)
    assert distance(-other, other) == pytest.approx(4.0, rel=1e-3)


def test_integers_and_codes_are_compared_by_bytes() -> None:
    other = torch.tensor([1, 2, 3, 4], dtype=torch.int8)
    assert distance(torch.tensor([1, 2, 3, 5], dtype=torch.int8), other) == 0.25
