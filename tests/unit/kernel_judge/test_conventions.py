"""What other projects' checks decide, as they document it."""

from __future__ import annotations

import math

import pytest
import torch

from kernel_judge import conventions


def test_torch_s_assert_close():
    one = torch.ones(10)
    assert conventions.assert_close(one, one + 1e-6, 1e-5, 1e-8) == (True, 0.0)
    passed, share = conventions.assert_close(one, one + 1e-3, 1e-5, 1e-8)
    assert (passed, share) == (False, 1.0)
    passed, share = conventions.assert_close(one, one)
    assert passed
    assert math.isnan(share)


def test_aiter_allows_one_element_of_twenty_to_be_anything():
    expected = torch.ones(100)
    actual = expected.clone()
    actual[:5] = 1e9
    assert conventions.check_all_close(actual, expected)[0]
    actual[5] = 2.0
    passed, share = conventions.check_all_close(actual, expected)
    assert not passed
    assert share == 0.06


def test_a_share_within_a_tolerance():
    expected = torch.zeros(8)
    actual = torch.tensor([0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.0, 0.0])
    within = conventions.share_within(actual, expected, 0.0, 0.5, 0.875)
    assert within == (True, 0.875)
    assert not conventions.share_within(actual, expected, 0.0, 0.5, 0.9)[0]


def test_nmse_is_of_the_expected_energy():
    expected = torch.tensor([3.0, 4.0])
    passed, value = conventions.nmse(expected + torch.tensor([0.0, 0.5]), expected)
    assert not passed
    assert value == 0.01
    assert conventions.nmse(expected, expected) == (True, 0.0)


def test_nan_and_one_sided_infinities_are_no_agreement():
    ones, wrong = torch.ones(4), torch.ones(4)
    for value in (math.nan, math.inf):
        wrong[1] = value
        assert not conventions.nmse(wrong, ones)[0]
        assert not conventions.nmse(ones, wrong)[0]
    assert conventions.nmse(wrong, wrong) == (True, 0.0)


def test_other_shapes_and_complex_outputs_are_refused():
    with pytest.raises(ValueError, match=r"shape \[4\], expected \[3\]"):
        conventions.nmse(torch.ones(4), torch.ones(3))
    other = torch.complex(torch.ones(2), torch.ones(2))
    with pytest.raises(ValueError, match="complex64"):
        conventions.nmse(other, torch.ones(2))
    assert conventions.check_all_close(other, torch.ones(2)) == (False, 1.0)
    assert conventions.check_all_close(other, other) == (True, 0.0)
