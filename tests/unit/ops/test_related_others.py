"""The relations of norms, products, turns, experts and samples hold, and faults show."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from generator.ops.op_types.gemm import op as gemm
from generator.ops.op_types.moe import op as moe
from generator.ops.op_types.moe.relations import ChosenExperts
from generator.ops.op_types.moe.weights import draw_f8
from generator.ops.op_types.rmsnorm import op as rmsnorm
from generator.ops.op_types.rope import op as rope
from generator.ops.op_types.sampling import op as sampling
from generator.ops.op_types.sampling.relations import same_law
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import CPU, known, loaded, replaced, run_of, sized
from tests.unit.ops.related import red, run_named, verdicts

NORM_NAME = "fused_add_rmsnorm_h2048"
NORM = sized(NORM_NAME, hidden_size=64)
GEMM_NAME = "gemm_n128_k2048"
GEMM = sized(GEMM_NAME, N=24, K=96)
ROPE_NAME = "rope_with_cos_sin_cache_neox_style_d128_rd64"


def test_norms_hold_and_their_faults_show():
    run, of_norm = run_named(NORM_NAME), partial(red, rmsnorm, NORM)
    assert of_norm(run) == set()
    assert of_norm(lambda h, r, w: run(h, r + 1, w)) == {
        "rows-scaled",
        "residual-swapped",
    }
    assert of_norm(lambda h, r, w: run(h, h, w)) == {"residual-swapped"}
    assert "columns-permuted" in of_norm(lambda h, r, w: run(h, r, w.roll(1)))
    reversed_rows = of_norm(lambda h, r, w: run(h, r.roll(1, 0), w))
    assert reversed_rows >= {"rows-reversed", "rows-in-two"}
    assert "residual-swapped" not in {
        relation.name for relation in rmsnorm.OP.relations(known("rmsnorm_h128"))
    }


def test_products_hold_and_their_faults_show():
    run, of_gemm = run_named(GEMM_NAME), partial(red, gemm, GEMM)
    assert of_gemm(run) == set()
    assert of_gemm(lambda a, b: run(a, b.roll(1, 0))) == {
        "rows-and-columns-reversed",
        "n-shards-concatenate",
    }
    # of what all columns have, a rank knows its own part alone
    centred = of_gemm(lambda a, b: run(a, b) - run(a, b).mean(1, keepdim=True))
    assert "n-shards-concatenate" in centred
    assert "rows-and-columns-reversed" not in centred
    assert of_gemm(lambda a, b: run(a, b) + 0.25) == {"k-in-two"}
    assert of_gemm(lambda a, b: run(a, b).relu()) == {"k-in-two"}
    assert of_gemm(lambda a, b: run(a, b).roll(1, 0)) >= {"rows-and-columns-reversed"}


def test_turns_hold_and_their_faults_show():
    definition = known(ROPE_NAME)
    run, of_rope = run_named(ROPE_NAME), partial(red, rope, definition)
    assert of_rope(run) == set()
    # a position squared: the difference of two no longer says what the turn is
    assert "relative-positions" in of_rope(
        lambda q, k, cache, p: run(q, k, cache, (p * p) % len(cache))
    )
    in_order = of_rope(lambda q, k, cache, p: run(q, k, cache, torch.arange(len(p))))
    assert in_order >= {"relative-positions", "tokens-reversed", "turned-twice"}
    assert of_rope(lambda q, k, cache, p: (q, k)) == {"half-turn"}
    keys_against = of_rope(
        lambda q, k, cache, p: (run(q, k, cache, p)[0], run(q, k, cache, -p)[1])
    )
    assert "relative-positions" in keys_against


MOE_SIZES = {"hidden_size": 256, "intermediate_size": 128}
DEEPSEEK_NAME = "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048"


def moe_sized(name):
    """Return a definition of mixed experts with short rows; the rest as it is."""
    axes = known(name).axes
    short = {
        **MOE_SIZES,
        "num_hidden_blocks": 2,
        "num_intermediate_blocks": 1,
        "gemm1_out_size": 256,
        "num_gemm1_out_blocks": 2,
    }
    return sized(name, **{axis: n for axis, n in short.items() if axis in axes})


@pytest.mark.parametrize(
    "name",
    [
        DEEPSEEK_NAME,
        "moe_fp8_block_scale_renorm_topk8_e128_h2048_i768",
        "trtllm_fp4_block_scale_moe_topk1_e128_h5120_i8192",
        "trtllm_fp4_block_scale_routed_moe_topk1_e128_h5120_i8192",
        "trtllm_fp4_block_scale_routed_moe_topk8_e128_h2048_i768",
        "trtllm_fp8_per_tensor_scale_moe_topk1_e16_h5120_i8192",
    ],
)
def test_experts_hold_and_a_wrong_expert_shows(name):
    definition, run = moe_sized(name), run_named(name)
    found = verdicts(moe, definition, run)
    halves = "offset" if name == DEEPSEEK_NAME else "expert"
    renamed = set() if name == DEEPSEEK_NAME else {"experts-renamed"}
    assert set(found) == {"tokens-reversed", f"{halves}-halves-add-up", *renamed}
    assert all(v.passed for of in found.values() for v in of)
    names = list(definition.interface.inputs)

    def second_product_of_the_next(*given):
        inputs = dict(zip(names, given, strict=True))
        two = inputs["gemm2_weights"]
        inputs["gemm2_weights"] = two.view(torch.uint8).flip(0).view(two.dtype)
        return run(*inputs.values())

    # nearly all experts are zeros, and so is what a wrong one gives
    assert red(moe, definition, second_product_of_the_next)


def test_an_offset_that_is_ignored_shows():
    text = loaded(DEEPSEEK_NAME).reference
    wrong = replaced(text, "local_expert + local_expert_offset", "local_expert")
    assert "offset-halves-add-up" in red(moe, moe_sized(DEEPSEEK_NAME), run_of(wrong))


def test_an_activation_after_the_sum_shows():
    name = "trtllm_fp4_block_scale_routed_moe_topk8_e128_h2048_i768"
    last = "return output.to(torch.bfloat16)"
    wrong = replaced(loaded(name).reference, last, last.replace("t.to", "t.abs().to"))
    assert red(moe, moe_sized(name), run_of(wrong)) == {"expert-halves-add-up"}
    # of the experts of a token only the last one counts
    wrong = replaced(loaded(name).reference, "output[tokens] +=", "output[tokens] =")
    assert red(moe, moe_sized(name), run_of(wrong)) == {"experts-renamed"}


def test_scales_of_one_token_for_all_show():
    name = "moe_fp8_block_scale_renorm_topk8_e128_h2048_i768"
    text = loaded(name).reference
    wrong = replaced(text, "hidden_states_scale.T.", "hidden_states_scale.T[:1].")
    assert "tokens-reversed" in red(moe, moe_sized(name), run_of(wrong))
    # weights that belong to the number of an expert, not to the expert
    wrong = replaced(
        text,
        "* weights[tokens, slots].unsqueeze(1)",
        "* weights[tokens, slots].unsqueeze(1) * (1 + expert / 64)",
    )
    assert red(moe, moe_sized(name), run_of(wrong)) == {"experts-renamed"}


def test_chosen_weights_are_those_of_the_stream_where_they_stand():
    tiled = draw_f8(Stream("chosen"), (5, 32, 64))
    chosen = ChosenExperts(tiled, {1: 4, 3: 0})
    made = chosen.tensor(CPU)
    assert torch.equal(made[1].float(), tiled[4].float())
    assert torch.equal(made[3].float(), tiled[0].float())
    assert not made[[0, 2, 4]].float().any()
    assert chosen.same_bits(made)
    made.view(torch.uint8)[3, 0, 0] ^= 1
    assert not chosen.same_bits(made)
    assert not chosen.same_bits(made[:4])
    moved = chosen.moved(lambda place: place - 1 if place > 1 else None)
    assert moved.experts == {2: 0}
    assert torch.equal(moved.on(CPU)[2].float(), tiled[0].float())
    assert not moved[0].float().any()


@pytest.mark.parametrize("kind", ["top_k", "top_p", "top_k_top_p"])
def test_samples_hold_and_names_that_matter_show(kind):
    name = f"{kind}_sampling_from_probs_v128256"
    definition, run = sized(name, vocab_size=512), run_named(name)
    of_kind = partial(red, sampling, definition)
    assert of_kind(run) == set()

    def rank_for_token(probs, *rest):
        return run(probs.sort(dim=1, descending=True).values, *rest)

    assert "vocabulary-permuted" in of_kind(rank_for_token)

    def high_numbers(probs, *rest):
        numbers = torch.arange(1.0, probs.shape[1] + 1).expand_as(probs)
        return run(numbers / numbers.sum(1, keepdim=True), *rest)

    assert "vocabulary-permuted" in of_kind(high_numbers)

    def first_row_for_all(probs, *rest):
        return run(probs[:1].expand_as(probs), *(r[:1].expand_as(r) for r in rest))

    assert "rows-reversed" in of_kind(first_row_for_all)


def test_two_samples_of_one_law_are_told_from_others():
    probs = torch.full((40, 4), 0.25)
    half = torch.tensor([0, 1] * 20)
    assert same_law({"probs": probs}, half, half.flip(0)).passed
    other = same_law({"probs": probs}, half, half + 2)
    assert not other.passed
    assert "token 0 20 times" in other.findings[0]
    assert not same_law({"probs": probs}, half[:-1], half).passed
    assert not same_law({"probs": probs}, half.int(), half).passed
    # too few draws for a test: they must be the same ones
    few = torch.tensor([3, 3])
    assert same_law({"probs": probs[:2]}, few, few).passed
    assert not same_law({"probs": probs[:2]}, few, few - 1).passed
