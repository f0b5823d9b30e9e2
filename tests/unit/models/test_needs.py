"""What models need: names worked out by hand from published figures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator.models.config import load
from generator.models.modules import needs, unplaced
from generator.models.parallel import Deployment
from generator.problems import Failure

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 96,
    "vocab_size": 256,
    "rms_norm_eps": 1e-5,
}

MIXTRAL = {"model_type": "mixtral", "num_local_experts": 4}
MINIMAX = {
    "model_type": "minimax_m2",
    "hidden_size": 128,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "intermediate_size": 128,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}

# model, options: some of the definitions
CASES: list[tuple[str, dict[str, Any], str]] = [
    (
        "llama-3.1-8b",
        {},
        (
            "gemm_bf16_n6144_k4096 gemm_bf16_n28672_k4096 gemm_bf16_n4096_k14336 "
            "silu_and_mul_i14336 gqa_paged_decode_h32_kv8_d128_ps64 "
            "gemm_bf16_n128256_k4096 rope_with_cos_sin_cache_neox_style_d128_rd128"
        ),
    ),
    (
        "llama-3.1-70b",
        {"tp": 8},
        (
            "gemm_bf16_n1280_k8192 gemm_bf16_n8192_k1024 gemm_bf16_n7168_k8192 "
            "gemm_bf16_n8192_k3584 gqa_ragged_prefill_causal_h8_kv1_d128 "
            "embedding_v16032_h8192 allreduce_add_rmsnorm_tp8_h8192 "
            "allreduce_tp8_h8192 allgather_tp8_h128256"
        ),
    ),
    ("llama-3.2-1b", {}, "gqa_paged_decode_h32_kv8_d64_ps64 gemm_bf16_n3072_k2048"),
    ("llama-3.2-3b", {"page_size": 16}, "gqa_paged_decode_h24_kv8_d128_ps16"),
    ("mistral-7b-v0.1", {}, "gqa_paged_decode_w4095_h32_kv8_d128_ps64"),
    ("mixtral-8x22b", {}, "moe_bf16_topk2_e8_h6144_i16384 gemm_bf16_n8_k6144"),
    ("phi-4-14b", {}, "gemm_bf16_n7680_k5120 gqa_paged_decode_h40_kv10_d128_ps64"),
    ("qwen2.5-7b", {}, "gemm_bf16_bias_n4608_k3584 gqa_paged_decode_h28_kv4_d128_ps64"),
    ("qwen3-8b", {}, "rmsnorm_h128 gemm_bf16_n24576_k4096"),
    ("qwen3-14b", {"tp": 2}, "gqa_paged_decode_h20_kv4_d128_ps64"),
    (
        "qwen3-32b",
        {"tp": 16},
        "gqa_paged_decode_h4_kv1_d128_ps64 gemm_bf16_n768_k5120",
    ),
    ("qwen3-30b-a3b", {}, "topk_softmax_e128_k8_renorm gemm_bf16_n128_k2048"),
    (
        "qwen3-235b-a22b",
        {"ep": 8},
        (
            "moe_bf16_topk8_e16_h4096_i1536 moe_dispatch_ep8_topk8_e128_h4096 "
            "moe_combine_ep8_h4096"
        ),
    ),
    (
        "qwen3-next-80b-a3b",
        {},
        (
            "gdn_decode_l2norm_qk16_v32_d128_k_last causal_conv1d_update_d8192_w4 "
            "gemm_bf16_n9216_k2048 gemm_bf16_n12288_k2048 gemm_bf16_n64_k2048 "
            "moe_bf16_topk10_e512_h2048_i512 sigmoid_and_mul_i4096 gemm_bf16_n1_k2048 "
            "rope_with_cos_sin_cache_neox_style_d256_rd64 gemma_rmsnorm_h256"
        ),
    ),
    (
        "gemma-2-9b",
        {},
        (
            "gqa_paged_decode_cap50_h16_kv8_d256_ps64 gemma_rmsnorm_eps_1em6_h3584 "
            "gqa_paged_decode_cap50_w4095_h16_kv8_d256_ps64 gelu_tanh_and_mul_i14336 "
            "gemm_bf16_n8192_k3584 soft_cap30_v256000"
        ),
    ),
    ("gemma-2-27b", {}, "gemm_bf16_n8192_k4608 gemm_bf16_n73728_k4608"),
    (
        "gemma-3-27b",
        {},
        (
            "gemma_rmsnorm_h128 gemm_bf16_n43008_k5376 "
            "gqa_ragged_prefill_causal_w1023_h32_kv16_d128"
        ),
    ),
    (
        "gpt-oss-20b",
        {},
        (
            "gqa_paged_decode_sink_w127_h64_kv8_d64_ps64 gemm_bf16_bias_n32_k2880 "
            "moe_mxfp4_topk4_e32_h2880_i2880"
        ),
    ),
    (
        "gpt-oss-120b",
        {"ep": 4},
        "moe_mxfp4_topk4_e32_h2880_i2880 gemm_bf16_bias_n128_k2880",
    ),
    (
        "deepseek-v3",
        {"tp": 8, "ep": 8},
        (
            "allreduce_add_rmsnorm_tp8_h7168 mla_paged_decode_h16_ckv512_kpe64_ps64 "
            "fp8_blockscale_gemm_sm90_n2112_k7168 per_token_group_quant_fp8_k7168 "
            "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048 "
            "silu_and_mul_i2304 mla_ragged_prefill_causal_h16_qk192_vo128 "
            "gemm_bf16_f32_n256_k7168 bmm_fp8_b16_n512_k128 bmm_fp8_b16_n128_k512 "
            "rope_with_cos_sin_cache_gptj_style_d64_rd64 "
            "append_paged_mla_kv_cache_ckv512_kpe64"
        ),
    ),
    (
        "deepseek-v3.2",
        {"tp": 8},
        (
            "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64 hadamard_transform_d128 "
            "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64 "
            "fp8_blockscale_gemm_sm90_n8192_k1536 fp8_blockscale_gemm_sm90_n128_k7168 "
            "gemm_bf16_n64_k7168 rope_with_cos_sin_cache_neox_style_d128_rd64 "
            "top_k_page_table_transform_k2048_ps64"
        ),
    ),
    (
        "kimi-k2",
        {"tp": 8, "ep": 8},
        (
            "mla_paged_decode_h8_ckv512_kpe64_ps64 "
            "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e48_h7168_i2048"
        ),
    ),
    (
        "glm-4.6",
        {},
        (
            "gqa_paged_decode_h96_kv8_d128_ps64 silu_and_mul_i1536 "
            "gemm_bf16_bias_n14336_k5120 gemm_f32_n160_k5120"
        ),
    ),
    ("minimax-m2", {}, "rmsnorm_h6144 rmsnorm_h1024 gemm_f32_n256_k3072"),
    (
        "llama-4-scout",
        {"tp": 8},
        (
            "chunked_attention_prefill_c8192_h5_kv1_d128 topk_sigmoid_e16_k1 "
            "rmsnorm_no_weight_h128 scale_queries_by_position_h5_d128"
        ),
    ),
    (
        "nemotron-h-8b",
        {},
        (
            "mamba_ssu_decode_h128_d64_s128_ng8 causal_conv1d_fwd_bias_d10240_w4 "
            "gemm_bf16_n18560_k4096 relu2_i21504 gemm_bf16_n21504_k4096"
        ),
    ),
    # the bias is that of query, key and value, not of the output
    ("seed-oss-36b", {"tp": 8}, "gemm_bf16_bias_n1536_k5120 gemm_bf16_n5120_k1280"),
    # norms behind attention and MLP alone: over all heads, and over each
    (
        "olmo-3-7b",
        {},
        "residual_add_h4096 rmsnorm_eps_1em6_h4096 gqa_paged_decode_h32_kv32_d128_ps64",
    ),
    (
        "exaone-4.0-32b",
        {"tp": 2},
        "residual_add_h5120 gqa_paged_decode_w4095_h20_kv4_d128_ps64",
    ),
    (
        "glm-5",
        {"tp": 8, "ep": 8},
        (
            "rope_with_cos_sin_cache_gptj_style_d128_rd64 gemm_bf16_n2624_k6144 "
            "dsa_sparse_attention_h8_ckv512_kpe64_topk2048_ps64 gemm_f32_n256_k6144 "
            "mla_ragged_prefill_causal_h8_qk256_vo256 moe_bf16_topk8_e32_h6144_i2048"
        ),
    ),
    (
        "kimi-linear-48b-a3b",
        {"tp": 2},
        (
            "kda_decode_h16_d128 causal_conv1d_update_d6144_w4 gemm_bf16_n2048_k128 "
            "fused_topk_deepseek_e256_k8_ng1_kg1 silu_and_mul_i512"
        ),
    ),
    (
        "qwen3.5-27b",
        {"tp": 4},
        (
            "gdn_decode_l2norm_qk4_v12_d128_k_last gemm_bf16_n4096_k5120 "
            "gemm_bf16_n24_k5120 rope_with_cos_sin_cache_neox_style_d256_rd64 "
            "mrope_interleaved_t11_y11_x10_d256_rd64"
        ),
    ),
    (
        "mistral-small-4-119b",
        {},
        (
            "append_paged_mla_kv_cache_ckv256_kpe64 scale_queries_by_position_h32_d128 "
            "topk_softmax_e128_k4_renorm"
        ),
    ),
    (
        "qwen1.5-moe-a2.7b",
        {},
        "topk_softmax_e60_k4 gemm_bf16_bias_n6144_k2048 gemm_bf16_n1_k2048",
    ),
    # experts without a gate
    ("nemotron-3-nano", {}, "moe_bf16_relu2_topk6_e128_h2688_i1856 relu2_i3712"),
    # RoPE of text, and of tokens of an image
    ("qwen3-vl-8b", {}, "mrope_interleaved_t24_y20_x20_d128_rd128"),
]


@pytest.mark.parametrize(("model", "options", "some"), CASES)
def test_a_model_needs_these_definitions(model, options, some):
    rows = needs(load(model), Deployment(**options))

    assert set(some.split()) - {name for need in rows for name in need.names} == set()
    assert len({(need.module, need.name) for need in rows}) == len(rows)


def test_norms_have_the_models_constants():
    gemma = needs(load("gemma-3-27b"), Deployment())

    norms = [need for need in gemma if need.op_type == "rmsnorm"]
    assert [n.constants for n in norms] == [{"eps": 1e-6, "unit_offset": True}] * 4


def test_a_cache_in_8_bits_has_its_word():
    found = needs(load("llama-3.1-8b"), Deployment(kv_dtype="float8_e4m3fn"))

    named = {n.name for n in found}
    assert "gqa_paged_decode_kve4m3_h32_kv8_d128_ps64" in named
    # over keys that no cache has held yet
    assert "gqa_ragged_prefill_causal_h32_kv8_d128" in named


def test_an_indexer_normalises_its_keys():
    found = needs(load("deepseek-v3.2"), Deployment())

    (need,) = (n for n in found if n.op_type == "layernorm")
    assert need.names == ("layernorm_eps_1em6_h128", "layernorm_h128")
    assert need.constants == {"eps": 1e-6}


def test_experts_of_another_device_take_part_in_the_choice():
    qwen = load("qwen3-30b-a3b")
    block = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    figures = {**qwen.figures, "quantization_config": block}
    made = {}
    for ep in (1, 2):
        found = needs(replace(qwen, figures=figures), Deployment(ep=ep))
        (made[ep],) = (n.name for n in found if n.op_type == "moe")
    assert made == {
        1: "moe_fp8_block_scale_renorm_topk8_e128_h2048_i768",
        2: "moe_fp8_block_scale_renorm_shard_topk8_e64_h2048_i768",
    }


def test_what_has_no_name_is_listed():
    assert unplaced(load("gemma-3-27b"), Deployment()) == ["the vision tower"]
    assert unplaced(load("llama-3.1-8b"), Deployment()) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_key_value_heads": 3}, "num_attention_heads is 8, which "),
        ({"num_key_value_heads": None, "num_attention_heads": None}, "is missing"),
        ({"hidden_size": -1}, "hidden_size is -1, not an integer"),
        ({"hidden_size": 1 << 40}, "hidden_size is 1099511627776, not an integer"),
        ({"head_dim": None, "hidden_size": 63}, "hidden_size is 63"),
        ({"vocab_size": "many"}, "vocab_size is 'many'"),
        ({"rms_norm_eps": None}, "rms_norm_eps is missing"),
        ({"rms_norm_eps": 1}, "rms_norm_eps is 1, no number"),
        ({"quantization_config": {"quant_method": "awq"}}, "is 'awq'"),
        ({"quantization_config": 4}, "quantization_config.quant_method is null"),
        ({"partial_rotary_factor": 2}, "partial_rotary_factor is 2"),
        ({**MIXTRAL, "num_experts_per_tok": 9}, "more than the 4 experts"),
        ({**MIXTRAL, "num_experts_per_tok": None}, "num_experts_per_tok is missing"),
        ({**MINIMAX, "routed_scaling_factor": "2.5"}, "routed_scaling_factor is '2.5'"),
        ({**MINIMAX, "routed_scaling_factor": 0}, "routed_scaling_factor is 0, not a"),
        ({"model_type": "lama"}, "unknown; the nearest that is known, by 7"),
        ({"model_type": None}, "model_type is missing"),
    ],
)
def test_figures_that_no_model_has_are_refused(tmp_path: Path, changes, said):
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps({**LLAMA, **changes}))

    with pytest.raises(Failure) as raised:
        needs(load(str(file)), Deployment())

    assert said in str(raised.value)
    assert str(raised.value).startswith("tiny: ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("tp", [3, 16, 5])
def test_a_parallelism_that_does_not_divide_is_refused(tp, tmp_path):
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(LLAMA))

    with pytest.raises(Failure, match="does not divide"):
        needs(load(str(file)), Deployment(tp=tp))


def test_few_kv_heads_are_replicated(tmp_path):
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(LLAMA))

    found = needs(load(str(file)), Deployment(tp=8))

    assert "gqa_paged_decode_h1_kv1_d8_ps64" in {need.name for need in found}
    assert "KV heads replicated" in " ".join(need.module for need in found)


@pytest.mark.parametrize("text", ["[1]", "{", '{"a": 1, "a": 2}', '"x"'])
def test_what_is_no_config_is_refused_in_a_line(tmp_path, text):
    file = tmp_path / "config.json"
    file.write_text(text)

    with pytest.raises(Failure) as raised:
        load(str(file))

    assert "\n" not in str(raised.value)


def test_an_unknown_model_has_a_suggestion():
    with pytest.raises(Failure, match="Did you mean 'qwen3-14b'"):
        load("qwen3-14")
