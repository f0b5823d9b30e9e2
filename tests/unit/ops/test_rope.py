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
    of_flashinfer,
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
        made = of_flashinfer(cls, trial, "")
        for actual, expected in zip(made, trial.outputs, strict=True):
            assert torch.equal(actual, expected)
    assert set(seen) == {(16, True)}


def turned(positions, q, k, head_size, cache, is_neox):
    """Turn heads as apply_rope_with_cos_sin_cache does; NeoX style alone."""
    assert is_neox
    heads = (x.unflatten(1, (-1, head_size)) for x in (q, k))
    return tuple(x.flatten(1) for x in run_of(REFERENCE)(*heads, cache, positions))


def normalised(x, weight, eps, offset=0.0):
    scale = torch.rsqrt(x.float().square().mean(1, keepdim=True) + eps)
    return (x.float() * scale * (weight.float() + offset)).to(x.dtype)


def by_positions(q, k, pos_ids, rotary_dim, interleave, scale, theta, *llama31):
    assert (rotary_dim, interleave) == (128, False)
    constants = {"rope_theta": theta, "rope_scale": scale}
    if llama31:
        assert llama31 == (1, 4, 8192)
        constants["llama31"] = True
    inputs = {"q": q, "k": k, "pos_ids": pos_ids}
    definition = replace(SMALL, constants={**constants, "is_neox": True})
    return tuple(x.to(q.dtype) for x in rope.oracle(definition, inputs))


@pytest.mark.parametrize(
    "name",
    [
        "mrope_sectioned_t16_y24_x24_d128_rd128",
        "mrope_interleaved_t24_y20_x20_d128_rd128",
        "qk_rmsnorm_rope_eps_1em5_d128_rd64",
        "gemma_qk_rmsnorm_rope_eps_1em6_d128_rd128",
        "rope_pos_ids_theta10000_h32_kv8_d128",
        "llama31_rope_pos_ids_theta500000_scale8_h32_kv8_d128",
    ],
)
def test_adapters_map_each_kind_to_its_kernels(name, monkeypatch):
    stub = SimpleNamespace(
        apply_rope_with_cos_sin_cache=turned,
        apply_rope_pos_ids=by_positions,
        apply_llama31_rope_pos_ids=by_positions,
        norm=SimpleNamespace(
            rmsnorm=normalised, gemma_rmsnorm=lambda *a: normalised(*a, 1.0)
        ),
    )
    monkeypatch.setitem(sys.modules, "flashinfer", stub)
    cls = class_of(rope, known(name), run_of(loaded(name).reference))
    for case in cases_of(cls):
        trial = trial_of(cls, case)
        made = of_flashinfer(cls, trial, "")
        for actual, expected in zip(made, trial.outputs, strict=True):
            torch.testing.assert_close(actual, expected, rtol=8e-3, atol=2.4e-2)


def test_yarn_has_no_kernel_of_flashinfers():
    yarn = known("yarn_rope_pos_ids_theta150000_scale32_h64_kv8_d64")
    assert rope.flashinfer_backends(yarn) == ()


def test_the_published_yarn_of_gpt_oss_mixes_pairs_9_to_17():
    text = loaded("yarn_rope_pos_ids_theta150000_scale32_h64_kv8_d64").reference
    namespace: dict[str, object] = {}
    exec(text, namespace)  # noqa: S102
    plain = 150_000.0 ** (-torch.arange(32, dtype=torch.float64) / 32)
    ratio = plain / namespace["frequencies"](64)
    assert ratio[:9].tolist() == pytest.approx([1.0] * 9)
    assert ratio[18:].tolist() == pytest.approx([32.0] * 14)
    assert (ratio[9:18].diff() > 0).all()
