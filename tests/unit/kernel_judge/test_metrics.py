"""Every figure of a comparison against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from kernel_judge.comparison.metrics import WORST, measure
from kernel_judge.comparison.tolerance import Tolerance


def metrics(actual, expected, rtol=0.0, atol=0.0):
    return measure(torch.tensor(actual), torch.tensor(expected), Tolerance(rtol, atol))


def test_every_figure_of_a_small_example():
    found = metrics([3.0, 4.0, 0.0], [3.0, 2.0, 0.0], rtol=0.5, atol=0.25)
    assert found.elements == 3
    assert found.mismatched == 1
    assert found.max_abs == 2.0
    assert found.mean_abs == pytest.approx(2 / 3)
    assert found.max_rel == 1.0
    assert found.mean_rel == pytest.approx(1 / 3)
    assert found.nmse == pytest.approx(4 / 13)
    assert found.cosine == pytest.approx(17 / (5 * math.sqrt(13)))
    assert found.norm_ratio == pytest.approx(5 / math.sqrt(13))
    assert found.hit_ratio == pytest.approx(2 / 3)
    assert found.expected_rms == pytest.approx(math.sqrt(13 / 3))


def test_the_worst_five_exceed_their_allowance_most():
    # element 0 is off by 100, but 1 % of it is allowed; the others have no allowance
    expected = torch.zeros(3, 4, dtype=torch.float64)
    expected[0, 0] = 1e4
    actual = expected.clone()
    actual[0, 0] += 100.0
    offsets = {(1, 2): 5.0, (2, 3): 4.0, (0, 1): 3.0, (2, 0): 2.0, (1, 1): 1.0}
    for index, offset in offsets.items():
        actual[index] = offset
    found = measure(actual, expected, Tolerance(1e-2, 0.0))
    assert WORST == 5
    assert [w.index for w in found.worst] == list(offsets)
    assert [w.actual for w in found.worst] == [5.0, 4.0, 3.0, 2.0, 1.0]
    assert {w.expected for w in found.worst} == {0.0}


@pytest.mark.parametrize("elements", [0, 1, 4])
def test_fewer_than_five_elements_are_all_among_the_worst(elements):
    found = metrics([1.0] * elements, [2.0] * elements)
    assert len(found.worst) == elements
    assert found.elements == elements


def test_a_scalar_tensor_has_the_empty_index():
    assert metrics(1.0, 3.0).worst[0].index == ()


def test_an_allowance_is_met_at_its_very_edge():
    assert metrics([1.5], [1.0], rtol=0.25, atol=0.25).mismatched == 0
    assert metrics([1.5001], [1.0], rtol=0.25, atol=0.25).mismatched == 1


def test_zeros_expected_have_an_infinite_or_no_error():
    assert metrics([0.0, 1.0], [0.0, 0.0]).nmse == math.inf
    assert metrics([0.0, 1.0], [0.0, 0.0]).norm_ratio == math.inf
    both = metrics([0.0, 0.0], [0.0, 0.0])
    assert (both.nmse, both.cosine, both.norm_ratio) == (0.0, 1.0, 1.0)
    assert (both.max_rel, both.mean_rel) == (0.0, 0.0)


@pytest.mark.parametrize("side", ["actual", "expected"])
def test_the_cosine_with_zeros_is_zero_not_one(side):
    zeros, ones = [0.0, 0.0], [1.0, 1.0]
    pair = (zeros, ones) if side == "actual" else (ones, zeros)
    assert metrics(*pair).cosine == 0.0


def test_a_flipped_sign_has_cosine_minus_one():
    assert metrics([-1.0, -2.0], [1.0, 2.0]).cosine == pytest.approx(-1.0)


def test_values_that_are_not_finite_stay_out_of_the_figures():
    found = metrics([math.inf, 2.0, math.nan], [math.inf, 1.0, 7.0])
    assert found.elements == 1
    assert (found.max_abs, found.nmse, found.expected_rms) == (1.0, 1.0, 1.0)


def test_bfloat16_is_measured_in_float64():
    actual = torch.tensor([1.0, 1.0], dtype=torch.bfloat16)
    expected = torch.tensor([1.0 + 1e-9, 1.0], dtype=torch.float64)
    assert measure(actual, expected).max_abs == pytest.approx(1e-9)


def test_a_tensor_that_requires_grad_is_measured():
    actual = torch.ones(2, requires_grad=True)
    assert measure(actual, torch.ones(2)).max_abs == 0.0
