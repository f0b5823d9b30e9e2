"""A factor and an offset are seen; rounding, of few values or of many, is neither."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from kernel_judge.comparison.compare import compare
from kernel_judge.comparison.signed_error import (
    DEVIATIONS,
    Signed,
    SignedSums,
    _alike,
)
from kernel_judge.comparison.tolerance import DEFAULTS, Tolerance

BFLOAT16 = DEFAULTS["bfloat16"]
# what a kernel of attention may be off: its weights are rounded to bfloat16
ATTENTION = Tolerance(6e-3, 4e-3, 2e-5, bias=BFLOAT16.bias)
U = 2.0**-8


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def signed_errors(
    error: torch.Tensor, expected: torch.Tensor, unit: float
) -> tuple[Signed, Signed]:
    """Return the least-squares factor less 1, and the mean error, of one block."""
    sums = SignedSums()
    sums.add(error, expected, error.sum(dim=-1))
    return sums.result(unit, lambda: (error, expected))


def verdict(actual, expected, tolerance=BFLOAT16):
    return compare(actual, expected, tolerance, same_dtype=False)


@pytest.mark.parametrize("factor", [1.003, 0.997, 1.0015])
@pytest.mark.parametrize("shape", [(8, 128), (32, 128), (4096,)])
def test_a_factor_within_every_other_bound_is_seen(factor, shape):
    expected = drawn(*shape)
    found = verdict((expected * factor).bfloat16(), expected, ATTENTION)
    assert not found.passed
    assert found.metrics is not None
    assert found.metrics.factor == pytest.approx(factor, abs=5e-4)
    assert "times expected throughout; errors without a sign" in found.findings[0]
    without = replace(ATTENTION, bias=None)
    assert verdict((expected * factor).bfloat16(), expected, without).passed


@pytest.mark.parametrize("offset", [0.001, -0.001])
def test_an_offset_within_every_other_bound_is_seen(offset):
    expected = drawn(16, 512)
    found = verdict((expected + offset).bfloat16(), expected, BFLOAT16)
    (finding,) = found.findings
    assert "in the mean" in finding
    assert ("above" if offset > 0 else "below") in finding


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(1,), (2,), (3, 1), (1, 7), (40,), (5, 64)])
def test_one_rounding_is_no_sign_whatever_the_number_of_elements(dtype, shape):
    for seed in range(200):
        expected = drawn(*shape, seed=seed) * 2.0 ** (seed % 7)
        found = verdict(expected.to(getattr(torch, dtype)), expected, DEFAULTS[dtype])
        assert found.passed, (seed, found.findings)


@pytest.mark.parametrize("values", [1, 2, 5])
def test_few_values_that_come_often_are_rounded_alike(values):
    for seed in range(100):
        expected = (drawn(values, seed=seed).abs() + 0.1).repeat(500)
        found = verdict(expected.bfloat16(), expected)
        assert found.passed, (seed, found.findings)


def test_an_error_that_rows_share_is_as_many_as_there_are_rows():
    # of each row a scale is rounded to bfloat16
    for seed in range(50):
        expected = drawn(12, 4096, seed=seed)
        scale = drawn(12, 1, seed=1000 + seed).abs() + 0.5
        shared = expected * (scale.bfloat16().double() / scale)
        found = verdict(shared, expected, replace(BFLOAT16, nmse=None))
        assert found.passed, (seed, found.findings)


def outer_products(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return outer products [4, 64, 32] whose second factor is rounded, and exact ones."""
    first, second = drawn(4, 64, 1, seed=seed), drawn(4, 1, 32, seed=1000 + seed)
    return first * second.bfloat16().double(), first * second


def test_an_error_that_elements_across_rows_share_is_one():
    allowed = replace(DEFAULTS["float32"], rtol=1e-2, nmse=None)
    without = 0
    for seed in range(50):
        found, expected = outer_products(seed)
        assert verdict(found, expected, allowed).passed, seed
        # the same errors in another order, of which none are shared
        places = torch.randperm(found.numel(), generator=torch.manual_seed(seed))
        mixed = [t.flatten()[places].reshape(4, 64, 32) for t in (found, expected)]
        without += not verdict(*mixed, allowed).passed
    assert without > 5


@pytest.mark.parametrize("factor", [1.003, 0.997])
def test_a_factor_of_all_or_half_of_what_is_shared_is_seen(factor):
    allowed = replace(DEFAULTS["float32"], rtol=1e-2, nmse=None)
    for seed in range(20):
        found, expected = outer_products(seed)
        assert not verdict(found * factor, expected, allowed).passed
        # of 32 columns no errors are taken for shared, half of which have them
        half = expected[0].clone()
        half[:, ::2] *= factor
        assert not verdict(half, expected[0], allowed).passed


def test_figures_of_a_factor_by_hand():
    expected = torch.tensor([1.0, 2.0], dtype=torch.float64)
    factor, mean = signed_errors(expected * 0.5, expected, 0.0)
    assert factor.off == pytest.approx(0.5)
    assert mean.off == pytest.approx(0.75)
    # all of the error is the factor: nothing is left that rounding could explain
    assert factor.deviation == pytest.approx(0.0, abs=1e-15)
    # of the mean's error 1/4 is left in each, and two are few
    few = 1.0 + (DEVIATIONS**2 + 1.0) / 4.0
    assert mean.deviation == pytest.approx(few * math.sqrt(2) * 0.25 / 2)
    rounded, _ = signed_errors(expected * 0.0, expected, U)
    assert rounded.deviation == pytest.approx(U / math.sqrt(3) * math.sqrt(17) / 5)


def test_zeros_have_no_factor_but_a_mean():
    zeros = torch.zeros(4, dtype=torch.float64)
    factor, mean = signed_errors(zeros + 1.0, zeros, U)
    assert (factor.off, factor.deviation) == (0.0, 0.0)
    assert mean.off == 1.0
    nothing = torch.zeros(0, 3, dtype=torch.float64)
    assert [s.off for s in signed_errors(nothing, nothing, U)] == [0.0, 0.0]


def test_values_that_float32_holds_alike_are_one_in_the_range_of_float64():
    generator = torch.Generator().manual_seed(0)
    stored = torch.randn(999, generator=generator).bfloat16().double()
    # what an oracle computes of a stored value is off by roundings of float64
    off = stored * (1.0 + 1e-14 * torch.randn(999, generator=generator).double())
    values, counts = _alike(torch.cat([stored, off]).reshape(2, 999))
    expected, numbers = torch.unique(stored.float(), return_counts=True)
    assert torch.equal(values, expected.double())
    assert torch.equal(counts, 2 * numbers)
    far = torch.tensor([1e300, 1e-300, 1e300, -0.0, 0.0], dtype=torch.float64)
    values, counts = _alike(far)
    assert counts.tolist() == [2, 1, 2]
    assert torch.allclose(values, far[[4, 1, 0]], 1e-7, 0)
