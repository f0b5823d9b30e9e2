"""What a tolerance allows of a row, by the size of its elements."""

from __future__ import annotations

import math

import pytest
import torch

from kernel_judge.comparison.compare import ERROR, compare, mismatch
from kernel_judge.comparison.tolerance import Tolerance


def rows_of_two_sizes():
    return torch.tensor([[30.0, -40.0], [3e-3, -4e-3]], dtype=torch.float64)


def test_what_is_allowed_of_a_row_follows_from_that_row_alone():
    expected = rows_of_two_sizes()
    rms = math.sqrt(12.5)
    tolerance = Tolerance(rtol=0.0, atol=1e-6, of_row=0.1)
    allowed = tolerance.allowed(expected)
    assert allowed.tolist() == [
        [pytest.approx(1e-6 + rms)] * 2,
        [pytest.approx(1e-6 + 1e-4 * rms)] * 2,
    ]
    off = torch.tensor([[3.5, 0.0], [0.0, 0.0]])
    assert compare(expected + off, expected, tolerance).passed
    for wrong in (off * 1.02, torch.tensor([[0.0, 0.0], [0.0, 3.6e-4]])):
        found = compare(expected + wrong, expected, tolerance)
        assert not found.passed
        assert "and 0.1 of the RMS of its row" in found.findings[0]
        assert mismatch(expected + wrong, expected, tolerance)


def test_elements_without_rows_are_a_row_of_the_largest():
    tolerance = Tolerance(rtol=0.0, atol=0.0, of_row=0.1)
    assert tolerance.allowed(torch.tensor([3.0, -5.0, 0.0])).tolist() == [0.5] * 3


def test_a_row_of_infinities_allows_what_its_finite_elements_do():
    tolerance = Tolerance(rtol=0.0, atol=0.0, of_row=0.1)
    rows = torch.tensor([[math.inf, 2.0], [math.nan, 0.0]], dtype=torch.float64)
    assert tolerance.allowed(rows)[0, 1] == pytest.approx(0.1 * math.sqrt(2.0))
    assert tolerance.allowed(rows)[1, 1] == 0.0


def test_all_of_a_row_is_vacuous():
    expected = rows_of_two_sizes()
    for of_row in (1.0, 2.0):
        tolerance = Tolerance(rtol=0.0, atol=1e-6, of_row=of_row)
        found = compare(torch.zeros_like(expected), expected, tolerance)
        assert found.verdict == ERROR
        assert f"and {of_row:g} of the RMS exceeds" in found.findings[0]
