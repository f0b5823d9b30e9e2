"""Which tolerance an output gets against a source."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from kernel_judge.comparison.tolerance import (
    DEFAULTS,
    EXACT,
    Override,
    Tolerance,
    choose_tolerance,
    looser,
)

TIGHT, WIDE = Tolerance(1e-6, 1e-6, 1e-9), Tolerance(1e-2, 1e-2, 1e-4)


def of_float32(tolerance: Tolerance) -> Tolerance:
    """Return a tolerance with float32's bound of errors that have a sign."""
    return replace(tolerance, bias=2.0**-20)


@pytest.mark.parametrize(
    "bounds",
    [
        {"rtol": math.nan, "atol": 0.0},
        {"rtol": 0.0, "atol": math.nan},
        {"rtol": math.inf, "atol": 0.0},
        {"rtol": -1.0, "atol": 0.0},
        {"rtol": 0.0, "atol": 0.0, "nmse": math.nan},
        {"rtol": 0.0, "atol": 0.0, "of_row": math.nan},
        {"rtol": 0.0, "atol": 0.0, "hit_ratio": 0.0},
        {"rtol": 0.0, "atol": 0.0, "hit_ratio": math.nan},
        {"rtol": 0.0, "atol": 0.0, "bias": math.inf},
        {"rtol": 0.0, "atol": 0.0, "bias": math.nan},
        {"rtol": 0.0, "atol": 0.0, "norm_ratio": (0.0, math.inf)},
        {"rtol": 0.0, "atol": 0.0, "cosine": math.nan},
        {"rtol": 0.0, "atol": 0.0, "cosine": -2.0},
        {"rtol": "1e-3", "atol": 0.0},
        {"rtol": None, "atol": 0.0},
        {"rtol": torch.tensor(1e-3), "atol": 0.0},
    ],
)
def test_a_bound_that_nothing_can_exceed_is_refused(bounds):
    with pytest.raises(ValueError, match="below 0 or no share"):
        Tolerance(**bounds)


@pytest.mark.parametrize(
    ("dtype", "rtol", "atol", "nmse", "bias"),
    [
        ("float32", 1e-5, 1e-5, 1e-7, 2.0**-20),
        ("float16", 1e-3, 1e-3, 1e-6, 2.0**-15),
        ("bfloat16", 1e-2, 8e-3, 2e-5, 2.0**-12),
    ],
)
def test_the_defaults_are_those_of_the_contract(dtype, rtol, atol, nmse, bias):
    chosen = choose_tolerance((), "y", dtype, "oracle")
    assert chosen == Tolerance(rtol, atol, nmse, bias=bias)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1"])
def test_quantised_dtypes_ask_for_a_hit_ratio_direction_and_length(dtype):
    found = choose_tolerance((), "y", dtype, "flashinfer")
    assert (found.rtol, found.atol, found.hit_ratio) == (2e-1, 1e-1, 0.85)
    assert found.cosine > 0.9
    assert found.norm_ratio == (0.9, 1.1)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_integers_are_exact_even_under_a_tolerance_of_the_run(dtype):
    assert choose_tolerance((), "y", dtype, "oracle") == EXACT
    assert choose_tolerance((), "y", dtype, "oracle", 0.5) == EXACT


def test_the_first_override_that_applies_wins():
    overrides = (
        Override("lse", WIDE, "why", source="flashinfer/fa2"),
        Override("lse", TIGHT, "why"),
    )

    def choose(output: str, source: str) -> Tolerance:
        return choose_tolerance(overrides, output, "float32", source)

    assert choose("lse", "flashinfer/fa2") == of_float32(WIDE)
    assert choose("lse", "flashinfer/fa3") == of_float32(TIGHT)
    assert choose("lse", "oracle") == of_float32(TIGHT)
    assert choose("output", "flashinfer/fa2") == DEFAULTS["float32"]


def test_an_override_may_be_about_some_sizes_alone():
    override = Override("y", TIGHT, "why", where=lambda axes: axes["rows"] > 2)
    assert override.applies("y", "oracle", "a case", {"rows": 3})
    assert not override.applies("y", "oracle", "a case", {"rows": 2})
    assert not override.applies("y", "oracle", "a case")


@pytest.mark.parametrize(
    ("named", "source", "applies"),
    [
        (None, "oracle", True),
        ("flashinfer", "flashinfer/fa2", True),
        ("flashinfer", "flashinfer", True),
        ("flashinfer/fa2", "flashinfer", False),
        ("flashinfer/fa2", "flashinfer/fa3", False),
        ("flashinfer", "oracle", False),
    ],
)
def test_an_override_names_a_provider_or_one_backend(named, source, applies):
    override = Override("y", WIDE, "why", source=named)
    assert override.applies("y", source, "a case") is applies
    assert not override.applies("z", source, "a case")


def test_an_override_may_be_about_one_case_only():
    override = Override("y", WIDE, "why", case="extreme-logits")

    def choose(case: str) -> Tolerance:
        return choose_tolerance((override,), "y", "float32", "oracle", case=case)

    assert choose("extreme-logits") == of_float32(WIDE)
    assert choose("ragged") == DEFAULTS["float32"]


def test_the_run_sets_rtol_and_atol_and_keeps_the_other_bounds():
    found = choose_tolerance((), "y", "bfloat16", "oracle", 1e-4)
    assert found == Tolerance(1e-4, 1e-4, 2e-5, bias=2.0**-12)
    override = Override("y", WIDE, "why")
    assert choose_tolerance((override,), "y", "float32", "oracle", 0.0) == Tolerance(
        0.0, 0.0, WIDE.nmse, bias=2.0**-20
    )


@pytest.mark.parametrize("pair", [(TIGHT, WIDE), (WIDE, TIGHT), (WIDE, WIDE)])
def test_looser_is_the_wider_one_in_either_order(pair):
    assert looser(*pair) == WIDE


def test_looser_allows_the_greater_bias_of_both():
    signed = replace(TIGHT, bias=1e-3)
    assert looser(signed, of_float32(WIDE)).bias == 1e-3
    # None bounds nothing
    assert looser(signed, WIDE).bias is None
