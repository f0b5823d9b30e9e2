"""rope: faults planted in the reference, the cache of the inputs, the adapter."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from generator.ops.op_types.rope import SPEC as ROPE
from generator.ops.op_types.rope import op as rope
from generator.rendering.plan import RenderOptions, plan_tests
from generator.rules.constants import resolve_constants
from tests.builders import (
    cases_of,
    class_of,
    known,
    loaded,
    oracle_failures,
    replaced,
    run_of,
    sized,
    trial_of,
)
from tests.unit.ops.survivors import with_defect

NAME = "rope_with_cos_sin_cache_neox_style_d128_rd64"
SMALL = sized(NAME, head_size=16, rotary_dim=8)
ALL = ["one-token", "position-zero", "ends-of-the-cache", "restarts", "one-head-each"]
REFERENCE = loaded(NAME).reference
FIRST = "first * cos - second * sin"
SECOND = "second * cos + first * sin"
# fault → the text and what replaces it
FAULTS = {
    "sign of one half": (FIRST, "first * cos + second * sin"),
    "halves swapped": (f"({FIRST}, {SECOND})", f"({SECOND}, {FIRST})"),
    "queries for keys": ("rotated(k, cos, sin)", "rotated(q, cos, sin)"),
    "dimensions behind cut": ("x[..., rotary_dim:]", "0 * x[..., rotary_dim:]"),
    "turned at the end of a head": (
        "return torch.cat((turned.to(x.dtype), x[..., rotary_dim:]), dim=-1)",
        "return torch.cat((x[..., rotary_dim:], turned.to(x.dtype)), dim=-1)",
    ),
    "computed in bfloat16": (
        "x[..., :rotary_dim].float().chunk(2, dim=-1)",
        "x[..., :rotary_dim].chunk(2, -1); cos, sin = cos.bfloat16(), sin.bfloat16()",
    ),
}


def rendered(run):
    return class_of(rope, SMALL, run)


def failures_of(reference):
    return oracle_failures(rendered(run_of(reference)), ("small",))


def test_the_reference_passes_every_case():
    assert oracle_failures(rendered(run_of(REFERENCE))) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(fault):
    old, new = FAULTS[fault]
    assert failures_of(replaced(REFERENCE, old, new))


@pytest.mark.parametrize("defect", ["pairs interleaved", "rotary_dim ignored"])
def test_other_pairs_fail_in_every_case(defect):
    run = with_defect(SMALL, run_of(REFERENCE), defect)
    assert oracle_failures(rendered(run), ("small",)) == ALL


@pytest.mark.parametrize(
    "defect", ["positions ignored", "positions of the first token"]
)
def test_positions_show_wherever_they_are_not_the_rows_number(defect):
    run = with_defect(SMALL, run_of(REFERENCE), defect)
    caught = {
        "positions ignored": ["one-token"],
        "positions of the first token": [],
    }[defect]
    others = ["ends-of-the-cache", "restarts", "one-head-each"]
    assert oracle_failures(rendered(run), ("small",)) == caught + others


def test_the_oracle_turns_neighbours_where_the_style_is_gptj():
    definition = replace(SMALL, constants={"is_neox": False})
    cls = class_of(rope, definition, run_of(REFERENCE))
    assert oracle_failures(cls, ("small",)) == ALL
    trial = trial_of(cls, cases_of(cls)[0])
    q_out, _ = rope.oracle(definition, trial.inputs)
    q, row = trial.inputs["q"].double(), trial.inputs["cos_sin_cache"][37].double()
    expected = q[0, 0, 2] * row[1] - q[0, 0, 3] * row[5]
    assert q_out[0, 0, 2].item() == pytest.approx(expected.item())
    assert torch.equal(q_out[..., 8:], q[..., 8:])


@pytest.mark.parametrize(
    ("name", "value", "source"),
    [
        (NAME, True, '"neox" in the name'),
        ("rope_gptj_style_d128_rd64", False, '"gptj" in the name'),
        ("rope_d128_rd64", True, "the convention of rope"),
    ],
)
def test_the_style_is_of_the_name(name, value, source):
    definition = replace(loaded(NAME), name=name)
    (constant,), problems = resolve_constants(definition, ROPE)
    assert (constant.name, constant.value, constant.source) == (
        "is_neox",
        value,
        source,
    )
    assert constant.independent
    assert problems == []
    (planned,) = plan_tests("rope", [definition], RenderOptions()).classes
    assert planned.constants == (constant,)


def test_the_rows_of_the_cache_are_points_of_the_circle_and_differ():
    cls = class_of(rope, known(NAME), run_of(REFERENCE))
    inputs = trial_of(cls, cases_of(cls, ["medium"])[0]).inputs
    cos, sin = inputs["cos_sin_cache"].double().chunk(2, dim=1)
    torch.testing.assert_close(
        cos.square() + sin.square(), torch.ones_like(cos), rtol=0, atol=1e-6
    )
    assert len({tuple(row) for row in cos.tolist()}) == len(cos)
    assert (cos < 0).any()
    assert (sin < 0).any()


def test_the_adapter_passes_rows_of_heads(monkeypatch):
    seen = []

    def apply(positions, query, key, head_size, cos_sin_cache, is_neox):
        assert query.dim() == key.dim() == 2
        seen.append((head_size, is_neox))
        heads = (x.unflatten(1, (-1, head_size)) for x in (query, key))
        out = run_of(REFERENCE)(*heads, cos_sin_cache, positions)
        return tuple(x.flatten(1) for x in out)

    stub = SimpleNamespace(apply_rope_with_cos_sin_cache=apply)
    monkeypatch.setitem(sys.modules, "flashinfer", stub)
    cls = rendered(run_of(REFERENCE))
    for case in cases_of(cls):
        trial = trial_of(cls, case)
        made = cls.flashinfer_ground_truth(trial.definition, trial.fresh_inputs(), "")
        for actual, expected in zip(made, trial.outputs, strict=True):
            assert torch.equal(actual, expected)
    assert set(seen) == {(16, True)}
