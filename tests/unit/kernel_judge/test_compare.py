"""The verdict on one output: what passes, what fails, and what the message says."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_judge.comparison import compare as module
from kernel_judge.comparison.compare import ERROR, FAILED, PASSED, compare, mismatch
from kernel_judge.comparison.tolerance import DEFAULTS, EXACT, Tolerance

LOOSE = Tolerance(rtol=0.1, atol=0.1)
QUANTISED = DEFAULTS["float8_e4m3fn"]
NAN, INF = math.nan, math.inf


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)


def verdict(actual, expected, tolerance=LOOSE, *, same_dtype=True):
    return compare(actual, expected, tolerance, same_dtype=same_dtype)


def test_equal_tensors_pass_without_a_finding():
    result = verdict(tensor(1, -2, 3), tensor(1, -2, 3))
    assert (result.verdict, result.findings, result.passed) == (PASSED, (), True)
    assert result.metrics.max_abs == 0.0
    assert result.message("y") == "y: PASSED"


@pytest.mark.parametrize(
    ("actual", "text"),
    [
        (None, "a tensor is expected, got NoneType"),
        (1.0, "a tensor is expected, got float"),
        ([1.0, 2.0], "a tensor is expected, got list"),
    ],
)
def test_what_is_no_tensor_fails(actual, text):
    result = verdict(actual, tensor(1, 2))
    assert (result.verdict, result.findings) == (FAILED, (text,))
    assert result.metrics is None


@pytest.mark.parametrize("shape", [(4,), (4, 1), (2, 2, 1), ()])
def test_another_shape_fails_even_where_it_would_broadcast(shape):
    result = verdict(torch.ones(shape), torch.ones(2, 2))
    assert result.findings == (f"shape {list(shape)}, expected [2, 2]",)
    assert result.verdict == FAILED


def test_another_dtype_fails_unless_the_expected_one_says_nothing():
    actual, expected = tensor(1, 2), tensor(1, 2).double()
    result = verdict(actual, expected)
    assert result.findings == ("dtype torch.float32, expected torch.float64",)
    assert verdict(actual, expected, same_dtype=False).passed


def test_the_order_is_structure_shape_dtype_non_finite_values():
    expected = torch.ones(2)
    wrong_everything = torch.full((3,), NAN, dtype=torch.float64)
    assert verdict(wrong_everything, expected).findings[0].startswith("shape")
    wrong_dtype = torch.full((2,), NAN, dtype=torch.float64)
    assert verdict(wrong_dtype, expected).findings[0].startswith("dtype")
    assert verdict(wrong_dtype.float(), expected).findings[0].startswith("actual has")


def _one(layout: str) -> torch.Tensor:
    value = torch.ones(2, 2)
    layouts = {
        "sparse": value.to_sparse,
        "mkldnn": value.to_mkldnn,
        "meta": lambda: value.to("meta"),
        "packed fp4": lambda: value.byte().view(torch.float4_e2m1fn_x2),
        "jagged": lambda: torch.nested.nested_tensor(
            [value[0], value[1]], layout=torch.jagged
        ),
    }
    return layouts[layout]()


@pytest.mark.parametrize("layout", ["sparse", "mkldnn", "meta", "packed fp4", "jagged"])
def test_what_has_no_dense_numbers_fails_with_a_line(layout):
    one = _one(layout)
    for result in (compare(one, one, EXACT), compare(one, one, Tolerance(1.0, 1.0))):
        assert result.verdict == FAILED
        (finding,) = result.findings
        assert finding.startswith("no dense tensor of real numbers: ")


@pytest.mark.parametrize("of", ["actual", "expected", "both"])
def test_a_complex_output_never_passes_by_its_real_part(of):
    real, other = torch.ones(3), torch.complex(torch.ones(3), torch.arange(3.0))
    actual = real if of == "expected" else other
    expected = real if of == "actual" else other.conj()
    result = compare(actual, expected, Tolerance(1e-3, 1e-3))
    assert result.verdict == FAILED
    assert "complex64" in result.findings[0]
    parts = [torch.view_as_real(t.resolve_conj()) for t in (other, other.conj())]
    assert compare(parts[0], parts[0], EXACT).passed
    assert not compare(*parts, EXACT).passed


@pytest.mark.parametrize("same_dtype", [True, False])
def test_nan_fails_in_either_and_in_both(same_dtype):
    clean, broken = tensor(1, 2, 3, 4), tensor(1, NAN, 3, NAN)
    for actual, expected, side in (
        (broken, clean, "actual"),
        (clean, broken, "expected"),
        (broken, broken, "actual"),
    ):
        result = verdict(actual, expected, same_dtype=same_dtype)
        assert result.verdict == FAILED
        assert result.findings == (f"{side} has NaN in 2 of 4 elements",)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ((INF, 1), (-INF, 1)),
        ((INF, 1), (1, 1)),
        ((1, 1), (INF, 1)),
        ((INF, 1), (1, INF)),
        ((65504.0, 1), (INF, 1)),
    ],
)
def test_infinities_must_match_in_place_and_sign(actual, expected):
    tolerance = Tolerance(rtol=1e300, atol=0.0)
    result = verdict(tensor(*actual), tensor(*expected), tolerance)
    assert result.verdict == FAILED
    assert result.findings[0].startswith("infinities disagree in ")
    assert "first at (0,): actual" in result.findings[0]


def test_the_first_disagreeing_infinity_is_named_by_its_whole_index():
    actual, expected = torch.ones(2, 3), torch.ones(2, 3)
    expected[1, 2] = -INF
    finding = verdict(actual, expected).findings[0]
    assert finding == (
        "infinities disagree in 1 of 6 elements, first at (1, 2): "
        "actual 1, expected -inf"
    )


def test_equal_infinities_pass_and_leave_the_metrics_to_the_others():
    result = verdict(tensor(INF, -INF, 2.0), tensor(INF, -INF, 2.05))
    assert result.passed
    assert result.metrics.elements == 1
    assert result.metrics.max_abs == pytest.approx(0.05)
    assert not verdict(tensor(INF, 2.0), tensor(INF, 3.0)).passed


def test_an_atol_above_the_signal_is_an_error_not_a_pass():
    expected = tensor(1e-3, -1e-3)
    result = verdict(expected.clone(), expected, Tolerance(rtol=0.0, atol=2e-3))
    assert result.verdict == ERROR
    assert not result.passed
    assert result.findings == (
        (
            "vacuous: atol 0.002 exceeds the RMS of the expected output, 0.001; "
            "zeros would pass"
        ),
    )
    assert verdict(expected, expected, Tolerance(0.0, 0.9e-3)).passed


def test_zeros_are_matched_exactly_whatever_the_atol():
    zeros = torch.zeros(3)
    assert verdict(torch.zeros(3), zeros).passed
    assert verdict(-torch.zeros(3), zeros).passed
    result = verdict(tensor(0, 1e-6, 0), zeros)
    assert result.verdict == FAILED
    assert result.findings == ("zeros are expected, the largest value is 1e-06",)


def test_no_elements_agree():
    result = verdict(torch.zeros(0, 4), torch.zeros(0, 4))
    assert result.passed
    assert result.metrics.elements == 0


@pytest.mark.parametrize(
    ("field", "tolerance", "prefix"),
    [
        ("hit_ratio", LOOSE, "mismatched elements"),
        ("nmse", Tolerance(1.0, 0.1, nmse=1.0), "NMSE nan"),
        ("cosine", Tolerance(1.0, 0.1, cosine=0.0), "cosine nan"),
        ("norm_ratio", Tolerance(1.0, 0.1, norm_ratio=(0.0, 9.0)), "norm ratio nan"),
    ],
)
def test_a_metric_that_is_nan_fails_its_bound(monkeypatch, field, tolerance, prefix):
    measure = module.measure

    def broken(*arguments, **named: bool):
        metrics = measure(*arguments, **named)
        object.__setattr__(metrics, field, NAN)
        return metrics

    monkeypatch.setattr(module, "measure", broken)
    result = verdict(tensor(1, 2), tensor(1, 2), tolerance)
    assert result.verdict == FAILED
    assert result.findings[0].startswith(prefix)


def test_the_message_counts_mismatches_and_shows_the_worst_elements():
    expected = torch.full((2, 4), 2.0)
    actual = expected.clone()
    actual[1, 2], actual[0, 3] = 5.0, 1.0
    result = verdict(actual, expected)
    lines = result.message("'y' against oracle, case a").splitlines()
    assert lines[:2] == [
        "'y' against oracle, case a: FAILED",
        (
            "  mismatched elements: 2 / 8 (25.0%), allowed 0.0%; the worst at (1, 2): "
            "actual 5, expected 2, difference 3, allowed 0.1 + 0.1·|expected| = 0.3"
        ),
    ]
    assert lines[-4:] == [
        (
            "  of 8 elements: mean 2.25, expected 2; MSE 1.25; cosine 0.9; "
            "factor 1.125; mean error 0.25"
        ),
        "  the worst elements:",
        "    (1, 2): actual 5, expected 2, difference 3",
        "    (0, 3): actual 1, expected 2, difference -1",
    ]


def test_the_message_names_no_relative_error_of_an_expected_zero():
    expected = tensor(0, 2, 3)
    text = verdict(tensor(1, 2, 3), expected).message("y")
    assert "e+30" not in text
    assert "the worst at (0,): actual 1, expected 0, difference 1" in text


def test_nmse_catches_a_small_error_everywhere():
    expected = torch.full((1000,), 1.0)
    tolerance = Tolerance(rtol=1e-2, atol=8e-3, nmse=2e-5)
    result = verdict(expected * 1.01, expected, tolerance)
    assert result.verdict == FAILED
    nmse, factor = result.findings
    assert nmse == "NMSE 0.0001, allowed 2e-05"
    assert factor.startswith("actual is 1.01 times expected throughout; errors without")


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_zeros_and_a_flipped_sign_fail_at_a_tolerance_above_the_signal(scale):
    # rtol 3 accepts every one of these elements: only direction and length object
    expected = torch.linspace(0.5, 2.0, 64)
    tolerance = Tolerance(3.0, 0.1, hit_ratio=0.85, cosine=0.98, norm_ratio=(0.9, 1.1))
    result = verdict(expected * scale, expected, tolerance)
    assert result.metrics.hit_ratio == 1.0
    assert result.verdict == FAILED
    assert result.findings[0].startswith("cosine")


def test_the_wrong_length_fails_by_its_norm_ratio():
    expected = torch.linspace(0.5, 2.0, 64)
    result = verdict(expected * 1.15, expected, QUANTISED)
    assert result.findings[0] == "norm ratio 1.150000, allowed 0.9 to 1.1"


@pytest.mark.parametrize(
    ("factor", "text"),
    [
        (math.log(2.0), "actual is 0.69315 times expected throughout, which is ln 2"),
        (-1.0, "actual is -1 times expected throughout"),
        (8.0, "actual is 8 times expected throughout"),
    ],
)
def test_one_factor_throughout_is_named(factor, text):
    expected = torch.linspace(0.5, 2.0, 64)
    finding = verdict(expected * factor, expected).findings[1]
    assert finding.startswith(text)
    noisy = expected * factor + torch.linspace(-1, 1, 64).cos()
    assert "throughout" not in "".join(verdict(noisy, expected).findings)


def test_a_factor_of_one_is_not_named():
    # two elements are wrong, the others have no error
    expected = torch.linspace(0.5, 2.0, 1024)
    actual = expected.clone()
    actual[:2] += torch.tensor([0.5, -0.5])
    (finding,) = verdict(actual, expected).findings
    assert finding.startswith("mismatched elements: 2")


def test_quantised_outputs_may_miss_a_few_elements_but_no_more():
    expected = torch.full((100,), 1.0)
    few, many = expected.clone(), expected.clone()
    few[:15], many[:16] = 1.4, 1.4
    assert verdict(few, expected, QUANTISED).passed
    result = verdict(many, expected, QUANTISED)
    assert result.verdict == FAILED
    assert "16 / 100 (16.0%), allowed 15.0%" in result.findings[0]


def test_integers_and_booleans_are_exact():
    expected = torch.tensor([1, 2**40, -3])
    assert verdict(expected.clone(), expected, EXACT).passed
    assert not verdict(expected + torch.tensor([0, 1, 0]), expected, EXACT).passed
    flags = torch.tensor([True, False])
    assert verdict(flags.clone(), flags, EXACT).passed
    assert not verdict(~flags, flags, EXACT).passed


def test_large_integers_that_float64_merges_are_told_apart():
    expected = torch.tensor([2**60, 5])
    assert not verdict(expected + torch.tensor([1, 0]), expected, EXACT).passed


def test_as_dict_has_the_verdict_and_every_figure():
    record = verdict(tensor(1, 4), tensor(1, 2)).as_dict()
    assert record["verdict"] == FAILED
    assert len(record["findings"]) == 1
    assert record["max_abs"] == 2.0
    assert record["worst"][0] == {"index": (1,), "actual": 4.0, "expected": 2.0}
    assert verdict(None, tensor(1)).as_dict().keys() == {"verdict", "findings"}


numbers = st.floats(-100, 100, width=32)
pairs = st.lists(st.tuples(numbers, numbers | st.none()), min_size=1, max_size=12)


@settings(deadline=None)  # torch's first call takes a while
@given(pairs, st.sampled_from([0.0, 1e-3, 0.1]), st.sampled_from([0.0, 1e-3, 0.5]))
def test_the_allclose_verdict_is_that_of_torch(pairs, rtol, atol):
    expected = tensor(*(e for e, _ in pairs)).double()
    actual = tensor(*(e if a is None else a for e, a in pairs)).double()
    result = verdict(actual, expected, Tolerance(rtol, atol))
    try:
        torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol)
        close = True
    except AssertionError:
        close = False
    if result.verdict == ERROR:
        assert atol > expected.square().mean().sqrt()
    elif not expected.any():
        assert result.passed == (not actual.any())
    else:
        assert result.passed == close


@given(
    st.lists(st.floats(-4, 4, width=32), min_size=1, max_size=9),
    st.lists(st.floats(-4, 4, width=32), min_size=9, max_size=9),
)
def test_what_mismatch_finds_fails_in_compare(actual, expected):
    pair = tensor(*actual), tensor(*expected[: len(actual)])
    if mismatch(*pair, LOOSE):
        assert not verdict(*pair).passed
    else:
        assert verdict(*pair).metrics is None or verdict(*pair).metrics.mismatched == 0


def test_mismatch_leaves_shapes_nan_and_shares_to_compare():
    assert mismatch(tensor(1, 2), tensor(1), LOOSE) == ""
    assert mismatch(tensor(NAN), tensor(1), LOOSE) == ""
    assert mismatch(tensor(9), tensor(1), QUANTISED) == ""
    assert "place 1" in mismatch(tensor(1, 9), tensor(1, 1), LOOSE)


def test_a_few_wrong_columns_are_no_factor_of_the_whole():
    expected = torch.randn(64, 4096, generator=torch.Generator().manual_seed(1))
    actual = expected.clone()
    actual[:, :3] *= 0.9
    text = verdict(actual, expected, DEFAULTS["float32"]).message("y")
    assert "mismatched elements: 192 / 262144" in text
    assert "times expected" not in text
    # the worst of all, and the five worst below it
    assert text.count(": actual ") == 6


def test_who_asks_for_no_allowed_element_has_the_same_verdict() -> None:
    expected = torch.linspace(1.0, 2.0, 64, dtype=torch.float64).reshape(8, 8)
    tolerance = Tolerance(rtol=1e-3, atol=0.0, nmse=1e-7)
    within = expected * 1.0001
    one_off, all_off = within.clone(), expected * (1.0 + 9e-4)
    one_off[2, 5] = 3.0
    for actual in (within, one_off, all_off):
        full = compare(actual, expected, tolerance)
        brief = compare(actual, expected, tolerance, names_allowed=False)
        assert (brief.verdict, brief.findings) == (full.verdict, full.findings)
        assert brief.passed or brief.metrics == full.metrics
    passed = compare(within, expected, tolerance, names_allowed=False)
    assert passed.metrics is not None
    assert passed.metrics.worst == ()
