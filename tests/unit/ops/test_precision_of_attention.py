"""The bounds against float64 tell attention in float32 from one that rounds weights."""

from __future__ import annotations

import math

import pytest
import torch

from tests.builders import cases_of, class_of, oracle_failures, run_of, trial_of
from tests.unit.ops.geometries import REPRESENTATIVES, definition_and_run, reference_of
from tests.unit.ops.survivors import op_of

FAMILIES = ("gqa_", "mla_", "dsa_sparse")
# gradients are of weights that a forward pass gave the sum of: they return no LSE, and
# have no softmax; their own rounding is tried below
BACKWARD = ("gqa_causal_backward_h12_kv12_d64", {})
ATTENTION = [
    r
    for r in REPRESENTATIVES
    if r[0].startswith(FAMILIES)
    and not any(other in r[0] for other in ("rope_quantize", "backward"))
]
# there is one key, whose weight is 1 in any precision
ONE_KEY = {"single-token", "one-chosen"}
QUERIES = {"q", "q_nope", "q_pe"}
WEIGHTS = "logits.softmax(dim=-1)"

each_attention = pytest.mark.parametrize(
    ("name", "axes"), ATTENTION, ids=[name for name, _ in ATTENTION]
)


def failures(name, axes, run):
    definition, _ = definition_and_run(name, axes)
    return oracle_failures(class_of(op_of(definition), definition, run), ("small",))


def with_weights(name, axes, ending):
    text = reference_of(name, axes)
    assert text.count(WEIGHTS) == 1
    return run_of(text.replace(WEIGHTS, WEIGHTS + ending))


@each_attention
def test_weights_rounded_to_bfloat16_are_red_in_every_case_of_several_keys(name, axes):
    wrong = with_weights(name, axes, ".bfloat16().float()")
    definition, _ = definition_and_run(name, axes)
    cls = class_of(op_of(definition), definition, wrong)
    several = [c.name for c in cases_of(cls) if c.name not in ONE_KEY]
    assert len(several) >= 3
    assert set(several) - set(failures(name, axes, wrong)) <= {"extreme-logits"}


@each_attention
def test_weights_rounded_to_float16_are_red(name, axes):
    assert failures(name, axes, with_weights(name, axes, ".half().float()"))


@each_attention
def test_an_lse_by_a_logarithm_of_2_of_five_digits_is_red(name, axes):
    _, run = definition_and_run(name, axes)

    def wrong(*inputs):
        output, lse = run(*inputs)
        return output, lse * (math.log(2.0) / 0.69315)

    assert failures(name, axes, wrong)


@each_attention
def test_float32_needs_a_third_of_what_is_allowed_beside_the_rounding(name, axes):
    definition, run = definition_and_run(name, axes)
    cls = class_of(op_of(definition), definition, run)
    for case in cases_of(cls):
        inputs = trial_of(cls, case).fresh_inputs()
        expected, exact_lse = cls.op.oracle(definition, inputs)
        # queries in float32 have the same values, and give outputs that are not rounded
        wide = {n: v.float() if n in QUERIES else v for n, v in inputs.items()}
        output, lse = run(*wide.values())
        assert output.dtype == torch.float32
        bound = cls.subject().tolerance("output", "oracle", case)
        assert float((output - expected).abs().max()) < bound.atol / 3
        bound = cls.subject().tolerance("lse", "oracle", case)
        exact = exact_lse[exact_lse.isfinite()]
        error = (lse[exact_lse.isfinite()] - exact).abs()
        assert float((error - bound.rtol * exact.abs()).max()) < bound.atol / 3


@pytest.mark.parametrize(
    "precise",
    [
        "(logits - sums).exp()",
        "weights * (slopes - taken) * sm_scale",
    ],
)
def test_gradients_by_factors_rounded_to_bfloat16_are_red(precise):
    text = reference_of(*BACKWARD)
    assert text.count(precise) == 1
    wrong = run_of(text.replace(precise, f"({precise}).bfloat16().float()"))
    assert failures(*BACKWARD, wrong)
    assert failures(*BACKWARD, run_of(text)) == []
