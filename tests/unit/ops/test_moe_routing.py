"""Routing: what is chosen, with what weight, and that no rounding could change it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from generator.ops.op_types.moe import op as moe
from generator.ops.op_types.moe import routing
from generator.ops.op_types.moe.inputs import routing_inputs
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import ROOT, distinct, known

NAMES = sorted(p.stem for p in Path(ROOT / "definitions/moe").glob("*.json"))
DEEPSEEK = "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048"
LLAMA4 = "trtllm_fp4_block_scale_moe_topk1_e16_h5120_i8192"
RENORM = "moe_fp8_block_scale_renorm_topk8_e128_h2048_i768"


def test_the_methods_are_told_by_the_interfaces():
    found = {name: routing.routing_of(known(name)) for name in NAMES}
    for name, method in found.items():
        expected = (
            routing.ROUTED
            if "routed" in name
            else routing.DEEPSEEK
            if "ds_routing" in name
            else routing.LLAMA4
            if "topk1_" in name
            else routing.RENORMALIZE
        )
        assert method == expected, name


@pytest.mark.parametrize("name", NAMES)
def test_the_constants_are_those_of_the_name(name):
    words = name.split("_")
    (top_k,) = (int(w[4:]) for w in words if w.startswith("topk"))
    grouped = "ng8" in words
    assert known(name).constants == {
        "top_k": top_k,
        "n_group": 8 if grouped else 1,
        "topk_group": 4 if grouped else 1,
    }


def margin(definition, inputs):
    """Return by how much the chosen scores lie above the others, at least."""
    if routing.routing_of(definition) in (routing.RENORMALIZE, routing.LLAMA4):
        scores = inputs["routing_logits"].double()
    else:
        scores = torch.sigmoid(inputs["routing_logits"].double())
        scores = scores + inputs["routing_bias"].double()
    n_group, kept = definition.constants["n_group"], definition.constants["topk_group"]
    margins = []
    if n_group > 1:
        groups = scores.view(len(scores), n_group, -1)
        strength = groups.topk(2).values.sum(2)
        order = strength.sort(descending=True)
        margins.append(order.values[:, kept - 1] - order.values[:, kept])
        allowed = torch.zeros_like(strength).scatter(1, order.indices[:, :kept], 1.0)
        scores = groups.masked_fill(allowed[:, :, None] == 0, -9.0).flatten(1)
    order = scores.sort(descending=True).values
    top_k = definition.constants["top_k"]
    margins.append(order[:, top_k - 1] - order[:, top_k])
    return min(float(m.min()) for m in margins)


@pytest.mark.parametrize("name", [n for n in NAMES if "routed" not in n])
def test_no_rounding_changes_a_choice(name):
    """float32 rounds a sigmoid and its sum with a bias by 2e-7 at most."""
    definition = known(name)
    for case in moe.cases(definition):
        made = routing_inputs(definition, distinct(case), Stream(name, case.name))
        assert margin(definition, made) > 2e-6, case.name


@pytest.mark.parametrize("name", NAMES)
def test_the_tokens_of_a_case_choose_among_the_experts_it_counts(name):
    definition = known(name)
    experts, local = routing.experts_of(definition)
    for case in moe.cases(definition):
        made = routing_inputs(definition, distinct(case), Stream(name, case.name))
        made["routed_scaling_factor"] = 2.5
        offset = case.params["offset"]
        choices = routing.choices(definition, made)
        chosen = {e for choice in choices for e in choice}
        here = {e for e in chosen if offset <= e < offset + local}
        assert all(0 <= e < experts for e in chosen)
        assert all(len(c) == definition.constants["top_k"] for c in choices)
        # few others than those that peak_bytes counts
        assert len(here) <= case.params["local"] + 2
        assert bool(here) == (case.name != "experts-elsewhere")


@pytest.mark.parametrize("name", NAMES)
def test_no_two_tokens_of_a_batch_have_the_same_weights(name):
    """Else one token's weights may be taken for another's, and nothing shows it."""
    definition = known(name)
    (case,) = (c for c in moe.cases(definition) if c.name == "batch")
    made = routing_inputs(definition, case, Stream(name, case.name))
    made["routed_scaling_factor"] = 2.5
    rows = [sorted(choice.values()) for choice in routing.choices(definition, made)]
    if definition.constants["top_k"] > 1:
        assert len(set(map(tuple, rows))) == len(rows)
    # of one expert each: 17 levels of its score, or of its packed weight
    assert len(set(map(tuple, rows))) > len(rows) // 2


@pytest.mark.parametrize("name", [n for n in NAMES if "routed" in n])
def test_packed_weights_of_a_batch_use_all_their_bits(name):
    definition = known(name)
    (case,) = (c for c in moe.cases(definition) if c.name == "batch")
    ids = routing_inputs(definition, case, Stream(name, case.name))["topk_ids"]
    for bit in range(7):
        assert {packed >> bit & 1 for packed in ids.flatten().tolist()} == {0, 1}


def test_a_tie_among_the_chosen_changes_nothing():
    definition = known(RENORM)
    logits = torch.zeros(1, 128)
    logits[0, [3, 9, 11, 40, 41, 90, 100, 127]] = 2.0
    (choice,) = routing.choices(definition, {"routing_logits": logits})
    assert choice == dict.fromkeys((3, 9, 11, 40, 41, 90, 100, 127), 0.125)


def test_a_tie_at_the_end_goes_to_the_lower_expert():
    definition = known(RENORM)
    logits = torch.zeros(1, 128)
    (choice,) = routing.choices(definition, {"routing_logits": logits})
    assert sorted(choice) == list(range(8))


def test_groups_are_chosen_by_their_two_best_and_weights_have_no_bias():
    definition = known(DEEPSEEK)
    logits = torch.full((1, 256), -20.0)
    # one excellent expert in group 7; groups 0 … 3 have two good ones each
    logits[0, 7 * 32] = 4.0
    good = [32 * g + 5 * k for g in range(4) for k in range(1, 3)]
    logits[0, good] = 1.0
    bias = torch.zeros(256)
    bias[good] = 0.5
    given = {
        "routing_logits": logits,
        "routing_bias": bias,
        "routed_scaling_factor": 2.0,
    }
    (choice,) = routing.choices(definition, given)
    assert sorted(choice) == sorted(good)
    assert all(math.isclose(weight, 0.25) for weight in choice.values())


def test_llama4_chooses_by_the_logit_alone():
    definition = known(LLAMA4)
    logits = torch.full((2, 16), -1.0)
    logits[0, 2] = 0.0
    # their sigmoids are 1 in float32
    logits[1, 3], logits[1, 9] = 24.0, 25.0
    bias = torch.zeros(16)
    bias[7] = 5.0
    given = {"routing_logits": logits, "routing_bias": bias}
    first, second = routing.choices(definition, given)
    assert first == {2: 0.5}
    assert list(second) == [9]


def test_packing_keeps_expert_and_weight():
    experts = torch.tensor([[0, 127, 383]])
    weights = torch.tensor([[0.5, 1.0, -0.25]])
    packed = routing.pack(experts, weights)
    assert packed.dtype == torch.int32
    assert packed.tolist() == [[0x3F00, 127 << 16 | 0x3F80, 383 << 16 | 0xBE80]]
    found = routing.unpack(packed)
    assert torch.equal(found[0], experts.int())
    assert torch.equal(found[1], weights)
    assert routing.unpack(packed)[1][0].tolist() == [0.5, 1.0, -0.25]
