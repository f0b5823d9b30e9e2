"""What one case shows: units in the last place, shares of a bound, room for more."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.mutation.tolerances.floor import half_ulp, measured
from generator.mutation.tolerances.judge import rounded_up
from generator.mutation.tolerances.result import LEAST
from kernel_judge.comparison.tolerance import Tolerance

BOUND = Tolerance(rtol=4e-3, atol=0.0, nmse=5e-6)
EXACT = torch.linspace(0.5, 7.3, 4001, dtype=torch.float64)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.floats(1e-30, 1e30),
    st.sampled_from([torch.bfloat16, torch.float32]),
)
def test_no_rounding_takes_more_than_half_a_unit(value: float, dtype) -> None:
    exact = torch.tensor([value, -value], dtype=torch.float64)
    half = half_ulp(exact, dtype)
    assert bool(((exact.to(dtype).double() - exact).abs() <= half).all())
    # and no less: a value half a unit beside a number of the dtype
    number = exact.to(dtype).double()
    away = torch.copysign(half_ulp(number, dtype), number)
    beside = number + away
    assert bool(((beside.to(dtype).double() - beside).abs() == away.abs()).all())


def test_units_of_zero_and_of_the_smallest_numbers() -> None:
    tiny = torch.finfo(torch.float16).tiny
    values = torch.tensor([0.0, tiny / 8, tiny, 1.0], dtype=torch.float64)
    steps = [0.0, 2.0**-25, 2.0**-25, 2.0**-11]
    assert half_ulp(values, torch.float16).tolist() == steps


@pytest.mark.parametrize(
    ("value", "up"),
    [(3.2e-6, 4e-6), (3e-6, 3e-6), (9.1, 10.0), (1.0, 1.0), (0.0, 0.0), (0.1, 0.1)],
)
def test_one_digit(value: float, up: float) -> None:
    assert rounded_up(value) == up


def test_one_rounding_is_a_floor_and_needs_no_room() -> None:
    found = measured("case", EXACT.bfloat16(), EXACT, BOUND, roundings=1, exact=EXACT)
    assert found is not None
    assert found.reference == found.floor == pytest.approx(1.7e-3, rel=0.1)
    assert found.source == 0.0
    assert found.share == found.least == found.proposed
    assert 0.9 < found.share < 1.0
    assert found.least_nmse == pytest.approx(found.floor**2)
    assert found.allowed == pytest.approx(math.sqrt(BOUND.nmse))


def test_arithmetic_needs_room() -> None:
    off = EXACT * (1.0 + 1e-4)
    found = measured(
        "case", off.float(), EXACT, Tolerance(1e-3, 0.0, 1e-6), roundings=1, exact=EXACT
    )
    assert found is not None
    assert found.share == pytest.approx(0.1, rel=1e-2)
    assert found.least == pytest.approx(LEAST * 0.1, rel=1e-2)
    assert found.energy == pytest.approx(0.1, rel=1e-2)
    assert found.least_nmse == pytest.approx((LEAST * 1e-4) ** 2, rel=1e-2)
    assert found.reference == pytest.approx(1e-4, rel=1e-2)


def test_two_that_round_alike_may_be_neighbours() -> None:
    kernel = EXACT.bfloat16()
    same = measured("case", kernel, kernel, BOUND, roundings=2, exact=EXACT)
    assert same is not None
    # an rtol of half a unit is too tight for neighbours, though these agree
    assert same.least > 1.0
    assert same.energy == 0.0
    assert same.source == same.reference == same.floor


def test_elements_that_may_be_beyond_need_nothing() -> None:
    off = EXACT.clone()
    off[:40] *= 2.0
    wide = Tolerance(1e-3, 0.0, None, hit_ratio=0.98)
    found = measured("case", off.float(), EXACT, wide, roundings=1)
    assert found is not None
    assert found.share < 1e-3
    assert found.energy == 0.0
    assert found.reference is None
    strict = Tolerance(1e-3, 0.0, None)
    found = measured("case", off.float(), EXACT, strict, roundings=1)
    assert found is not None
    assert found.share == pytest.approx(1000.0, rel=1e-3)


def test_infinities_are_left_out_and_zeros_show_nothing() -> None:
    some = EXACT.clone()
    some[0] = -math.inf
    found = measured("case", some.float(), some, BOUND, roundings=1, exact=some)
    assert found is not None
    assert found.elements == 4000
    assert math.isfinite(found.floor)
    nothing = torch.zeros(3)
    assert measured("case", nothing, nothing, BOUND, roundings=1) is None
