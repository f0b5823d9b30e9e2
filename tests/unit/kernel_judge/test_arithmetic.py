"""Bounds from arithmetic: what right kernels return is within, what is off is not."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch

import kernel_judge
from kernel_judge import Bounds, Tolerance, assert_matches, bounds, compare
from kernel_judge.comparison.arithmetic import KERNEL


def product(seed, dtype, accumulate, terms, factor=1.0):
    """Return a product accumulated term by term, and in float64."""
    stream = torch.Generator().manual_seed(seed)
    a = torch.randn(32, terms, generator=stream).to(dtype)
    b = torch.randn(terms, 32, generator=stream).to(dtype)
    total = torch.zeros(32, 32, dtype=accumulate)
    for k in range(terms):
        step = a[:, k : k + 1].to(torch.float64) * b[k : k + 1].to(torch.float64)
        total = (total.to(torch.float64) + step).to(accumulate)
    return (factor * total.double()).to(dtype), a.double() @ b.double()


ARITHMETICS = [
    (torch.bfloat16, torch.float32, 256),
    (torch.float16, torch.float16, 128),
    (torch.float32, torch.float32, 512),
    (torch.bfloat16, torch.bfloat16, 64),
]


@pytest.mark.parametrize(("dtype", "accumulate", "terms"), ARITHMETICS)
def test_a_sum_in_order_is_within_and_a_factor_is_not(dtype, accumulate, terms):
    arithmetic = {"accumulate": accumulate, "terms": terms}
    for seed in range(10):
        comparison = assert_matches(
            *product(seed, dtype, accumulate, terms), **arithmetic
        )
        assert comparison.passed
    unit = torch.finfo(accumulate).eps / 2.0
    factor = 1.0 + 8.0 * max(torch.finfo(dtype).eps / 2.0, unit * math.sqrt(terms))
    with pytest.raises(AssertionError, match="times expected"):
        assert_matches(
            *product(0, dtype, accumulate, terms, factor=factor), **arithmetic
        )


def test_the_bound_is_what_rounding_reaches():
    """A bound that rounding does not come near of would be blind."""
    actual, expected = product(1, torch.bfloat16, torch.float32, 64)
    found = bounds(dtype="bfloat16", terms=64, scale=8.0, elements=actual.numel())
    allowed = found.atol + found.rtol * expected.abs()
    assert 0.9 < float(((actual.double() - expected).abs() / allowed).max()) <= 1.0


def test_each_quantity_says_where_it_comes_from():
    found = bounds(
        dtype=torch.float16, terms=54, rounded=2, rounded_whole=1, against=KERNEL
    )
    assert isinstance(found, Bounds)
    unit = 2.0**-11
    assert found.rtol >= 2 * unit + 2 * unit + 4 * unit
    text = str(found)
    for part in ("float16", "a sum of 54 in float32", "deviations", "2 of each term"):
        assert part in text
    exact = bounds(dtype="float16", terms=54, rounded=2, rounded_whole=1)
    assert exact.rtol < found.rtol
    assert exact.nmse < found.nmse


def test_more_elements_and_fewer_alarms_widen_it():
    one = bounds(dtype="float32", terms=100)
    assert bounds(dtype="float32", terms=100, elements=2**30).atol > one.atol
    assert bounds(dtype="float32", terms=100, alarms=1e-12).atol > one.atol
    assert bounds(dtype="float32", terms=100, scale=3.0).atol == pytest.approx(
        3.0 * one.atol
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "int8"}, "int8 is no floating-point dtype"),
        ({"dtype": "bf16"}, "bf16 is no floating-point dtype"),
        ({"dtype": "float32", "terms": 0}, "at least 1"),
        ({"dtype": "float32", "terms": "4096"}, "whole numbers"),
        ({"dtype": "float32", "elements": 1.5}, "whole numbers"),
        ({"dtype": "float32", "rounded": -1}, "at least 0"),
        ({"dtype": "float32", "rounded": 1, "rounded_to": -0.5}, "below 0"),
        ({"dtype": "float32", "scale": math.inf}, "finite"),
        ({"dtype": "float32", "alarms": 0.0}, "alarms"),
        ({"dtype": "float32", "against": "oracle"}, "against is"),
        ({"dtype": "Tensor"}, "Tensor is no floating-point dtype"),
        ({"dtype": "float4_e2m1fn_x2"}, "no floating-point dtype"),
        ({"dtype": "float32", "terms": 10**400}, r"whole numbers < 2\^63"),
        ({"dtype": "float32", "scale": "1"}, "scale one above 0"),
        ({"dtype": "float32", "scale": torch.ones(3)}, "scale one above 0"),
        ({"dtype": "float32", "alarms": None}, "alarms is a number"),
    ],
)
def test_a_wrong_quantity_is_one_line(arguments, message):
    with pytest.raises(ValueError, match=message) as raised:
        bounds(**arguments)
    assert "\n" not in str(raised.value)


def test_a_failure_says_the_worst_element_and_the_derivation():
    actual, expected = product(2, torch.bfloat16, torch.float32, 64)
    actual[3, 5] += 4.0
    with pytest.raises(AssertionError) as raised:
        assert_matches(actual, expected, terms=64)
    text = str(raised.value)
    assert "(3, 5)" in text
    assert "a sum of 64 in float32" in text


@pytest.mark.parametrize(
    ("actual", "expected", "said"),
    [
        ([1.0], torch.ones(1), "a tensor is expected, got list"),
        (torch.ones(1).numpy(), torch.ones(1), "a tensor is expected, got ndarray"),
        (torch.ones(1), None, "a tensor was to be expected, not NoneType"),
    ],
)
def test_what_is_no_tensor_is_said(actual, expected, said):
    with pytest.raises(AssertionError, match=said):
        assert_matches(actual, expected)


def test_integers_and_booleans_are_exact_without_a_word():
    assert assert_matches(torch.arange(4), torch.arange(4)).passed
    assert assert_matches(torch.ones(4).bool(), torch.ones(4).bool()).passed
    with pytest.raises(AssertionError, match=r"actual 3, expected 2"):
        assert_matches(torch.tensor([1, 3]), torch.tensor([1, 2]))
    with pytest.raises(ValueError, match=r"torch.int64 is no floating-point dtype"):
        assert_matches(torch.arange(4), torch.arange(4), terms=3)


def test_a_tolerance_beside_arithmetic_is_refused():
    with pytest.raises(ValueError, match="a tolerance or terms: one of both"):
        assert_matches(torch.ones(4), torch.ones(4), Tolerance(0.0, 1e-3), terms=3)


def test_what_is_no_tolerance_is_refused():
    with pytest.raises(TypeError, match=r"tolerance is Tolerance\(rtol=…, atol=…\)"):
        assert_matches(torch.ones(4), torch.ones(4), 1e-3)


def test_a_failure_without_a_tolerance_ends_in_no_none():
    with pytest.raises(AssertionError) as raised:
        assert_matches(torch.ones(1), None)
    assert "None" not in str(raised.value).splitlines()[-1].split()


def test_zeros_do_not_pass_where_nothing_is_expected_to_be_small():
    wide = bounds(dtype="bfloat16", accumulate="bfloat16", terms=2**20)
    zeros, expected = torch.zeros(64), torch.randn(64)
    assert not compare(zeros, expected, wide).passed
    # and zeros that are expected are
    assert assert_matches(zeros, torch.zeros(64)).passed


def test_every_public_name_is_there_and_others_are_one_line():
    for name in kernel_judge.__all__:
        assert getattr(kernel_judge, name).__doc__, name
    with pytest.raises(AttributeError, match="kernel_judge has no judge_all; it has"):
        kernel_judge.judge_all  # noqa: B018


def test_constraints_and_interfaces_need_no_torch():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from kernel_judge import Definition, Override, Tolerance\n"
        "import kernel_judge.constraints\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
