"""What the map said of models and was not so: each error has a test."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from generator.dataset.paths import discover_definitions
from generator.models.config import config_of, load
from generator.models.coverage import State
from generator.models.modules import needs
from generator.models.parallel import Deployment
from generator.problems import Failure
from generator.rules.load import load_file
from tests.builders import ROOT
from tests.unit.models.figured import FP8, NEMOTRON_3, covered, named, with_figures
from tests.unit.models.mapped import mapped


# S1
def test_no_model_in_bfloat16_is_covered_in_float16() -> None:
    files = {file.name: file for file in discover_definitions(ROOT).files}
    gemms = 0
    for model in mapped():
        for entry in covered(load(model)):
            if entry.state.is_there:
                definition, _ = load_file(ROOT, files[entry.need.name])
                assert definition is not None
                dtypes = {tensor.dtype for tensor in definition.inputs.values()}
                assert "float16" not in dtypes, (model, entry.need.name)
                gemms += entry.need.op_type == "gemm"
    assert gemms > 9


# S1
def test_a_model_in_float16_is_covered_in_float16_alone() -> None:
    entries = covered(with_figures("llama-3.1-8b", torch_dtype="float16"))
    states = {entry.need.name: entry.state for entry in entries}
    assert states["gemm_n6144_k4096"].is_there
    assert not states["rmsnorm_eps_1em5_h4096"].is_there
    assert states["silu_and_mul_i14336"] is State.NO_FAMILY


# S1
@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("deepseek-v3", "gemm_bf16_f32_n256_k7168"),
        ("glm-4.6", "gemm_f32_n160_k5120"),
        ("minimax-m2", "gemm_f32_n256_k3072"),
        ("qwen3-30b-a3b", "gemm_bf16_n128_k2048"),
    ],
)
def test_routers_have_the_logits_that_engines_make(model: str, name: str) -> None:
    assert named(load(model))["router"] == {name}


# S2
@pytest.mark.parametrize(
    ("model", "modules"),
    [
        ("qwen2.5-7b", ["query, key and value projection"]),
        ("glm-4.6", ["query, key and value projection"]),
        (
            "gpt-oss-20b",
            ["query, key and value projection", "output projection", "router"],
        ),
        ("llama-3.1-8b", []),
    ],
)
def test_biases_have_a_word(model: str, modules: list[str]) -> None:
    biased = [
        module
        for module, of in named(load(model)).items()
        if any(name.startswith("gemm_bf16_bias_") for name in of)
    ]
    assert biased == modules


# S3
def test_latent_attention_multiplies_by_its_absorbed_weights() -> None:
    found = named(load("deepseek-v3"))
    assert found["queries into the latent space"] == {"bmm_fp8_b128_n512_k128"}
    assert found["outputs from the latent space"] == {"bmm_fp8_b128_n128_k512"}
    first = found["query, key and value compression"]
    assert first == {"fp8_blockscale_gemm_sm90_n2112_k7168"}


# S4
def test_an_indexer_has_its_projections() -> None:
    found = named(load("deepseek-v3.2"))
    for module, name in {
        "indexer, queries": "fp8_blockscale_gemm_sm90_n8192_k1536",
        "indexer, keys": "fp8_blockscale_gemm_sm90_n128_k7168",
        "indexer, weights of heads": "gemm_bf16_n64_k7168",
        "indexer, RoPE": "rope_with_cos_sin_cache_neox_style_d128_rd64",
        "indexer, Hadamard": "hadamard_transform_d128",
        "indexer, queries to 8 bits": "per_token_group_quant_fp8_k128",
        "indexer, places in the cache": "top_k_page_table_transform_k2048_ps64",
    }.items():
        assert found[module] == {name}
    assert "indexer, keys to 8 bits and to the cache" in found


# S5
def test_activations_become_8_bits_before_each_product_in_float8() -> None:
    rows = needs(load("deepseek-v3"), Deployment())
    for before, need in pairwise(rows):
        if need.name.startswith("fp8_blockscale_gemm_"):
            width = need.name.rpartition("_k")[2]
            assert before.name == f"per_token_group_quant_fp8_k{width}"


# S5
def test_modules_that_are_not_converted_stay_as_they_are() -> None:
    excluded = [f"model.layers.{i}.linear_attn.in_proj_ba" for i in range(48)]
    quantised = {**FP8, "modules_to_not_convert": [*excluded, "lm_head"]}
    found = named(with_figures("qwen3-next-80b-a3b", quantization_config=quantised))
    assert found["delta net, gates"] == {"gemm_bf16_n64_k2048"}
    assert found["delta net, input"] == {"fp8_blockscale_gemm_sm90_n12288_k2048"}
    some = {**FP8, "modules_to_not_convert": ["model.layers.0.self_attn.o_proj"]}
    found = named(with_figures("qwen3-8b", quantization_config=some))
    assert found["output projection, in 1 layers"] == {"gemm_bf16_n4096_k4096"}
    assert found["output projection"] == {"fp8_blockscale_gemm_sm90_n4096_k4096"}


# S6
def test_gemma_multiplies_once_by_query_key_and_value() -> None:
    found = named(load("gemma-2-9b"), tp=2)
    assert found["query, key and value projection"] == {"gemm_bf16_n4096_k3584"}
    assert found["MLP, gate and up"] == {"gemm_bf16_n14336_k3584"}
    assert found["all-reduce behind attention and MLP"] == {"allreduce_tp2_h3584"}


# S7
def test_gates_and_unit_lengths_have_rows() -> None:
    found = named(load("qwen3-next-80b-a3b"))
    assert found["delta net, decode"] == {"gdn_decode_l2norm_qk16_v32_d128_k_last"}
    assert found["attention's output times its gate"] == {"sigmoid_and_mul_i4096"}
    assert found["shared expert, gate"] == {"gemm_bf16_n1_k2048"}
    assert "shared expert times its gate" in found


# S8
def test_queries_and_keys_are_normalised_where_the_config_says_so() -> None:
    assert "query and key norm" in named(load("glm-4.6"))
    air = with_figures("glm-4.6", use_qk_norm=False)
    assert "query and key norm" not in named(air)
    scout = named(load("llama-4-scout"))
    module = "query and key to unit length, in layers with RoPE"
    assert scout[module] == {"rmsnorm_no_weight_h128"}
    assert "queries times a function of their position, in layers without RoPE" in scout


# S8
def test_a_norm_over_heads_of_all_gpus_is_no_norm_of_one() -> None:
    figures = {"quantization_config": None, "intermediate_size": 1536}
    found = named(with_figures("minimax-m2", **figures), tp=8)
    assert found["query norm, over GPUs"] == {"allreduce_rmsnorm_tp8_h768"}
    assert "query norm" not in found


# S9
@pytest.mark.parametrize(
    ("model", "figures"),
    [
        ("llama-3.2-1b", {"hidden_act": "gelu"}),
        ("llama-3.2-1b", {"attention_bias": True}),
        ("llama-3.2-1b", {"mlp_bias": True}),
        ("deepseek-v3", {"scoring_func": "softmax"}),
        ("deepseek-v3", {"norm_topk_prob": False}),
        ("deepseek-v3", {"topk_method": "greedy"}),
        ("deepseek-v3", {"hidden_act": "gelu"}),
        ("qwen3-30b-a3b", {"norm_topk_prob": False}),
        ("llama-4-scout", {"no_rope_layers": [1] * 48}),
        ("llama-4-scout", {"attn_temperature_tuning": False}),
        ("qwen2.5-7b", {"use_sliding_window": True, "max_window_layers": 9}),
        ("nemotron-h-8b", {"hybrid_override_pattern": "M*"}),
    ],
)
def test_a_key_that_changes_the_mathematics_changes_the_answer(
    model: str, figures: dict[str, Any]
) -> None:
    assert named(with_figures(model, **figures)) != named(load(model))


# S10
def test_nemotron_3_has_the_experts_that_it_has() -> None:
    found = named(config_of("nemotron-3", NEMOTRON_3))
    assert found["routing"] == {"fused_topk_deepseek_e128_k6_ng1_kg1"}
    assert found["experts"] == {"moe_bf16_relu2_topk6_e128_h2688_i1856"}
    assert found["shared expert, up"] == {"gemm_bf16_n3712_k2688"}
    assert found["shared expert, activation"] == {"relu2_i3712"}
    entries = covered(config_of("nemotron-3", NEMOTRON_3))
    states = {entry.need.module: entry.state for entry in entries}
    assert states["experts"] is State.NO_FAMILY


# S10
def test_latent_experts_are_as_wide_as_their_latent_space() -> None:
    found = named(config_of("super", {**NEMOTRON_3, "moe_latent_size": 1024}))
    assert found["experts"] == {"moe_bf16_relu2_topk6_e128_h1024_i1856"}
    assert found["experts, into their latent space"] == {"gemm_bf16_n1024_k2688"}
    assert found["experts, out of their latent space"] == {"gemm_bf16_n2688_k1024"}
    assert found["shared expert, up"] == {"gemm_bf16_n3712_k2688"}


# S11
def test_experts_of_a_default_are_none_of_a_dense_model() -> None:
    dense = with_figures("nemotron-h-8b", n_routed_experts=8)
    found = named(dense)
    assert found["MLP, up"] == {"gemm_bf16_n21504_k4096"}
    assert "router" not in found


# S12
@pytest.mark.parametrize("tp", [8, 16])
def test_a_shard_that_is_no_whole_blocks_is_refused(tp: int) -> None:
    quantised = with_figures("qwen3-235b-a22b", quantization_config=FP8)
    with pytest.raises(Failure, match=r"moe_intermediate_size is 1536: .* use --ep"):
        needs(quantised, Deployment(tp=tp))
    assert needs(quantised, Deployment(tp=4))
    assert needs(quantised, Deployment(tp=4, ep=8))


# S12
def test_a_dense_shard_that_is_no_whole_blocks_is_refused() -> None:
    quantised = with_figures("qwen3-8b", quantization_config=FP8)
    assert needs(quantised, Deployment(tp=8))
    narrow = with_figures(quantised, intermediate_size=12320)
    with pytest.raises(Failure, match="MLP, gate and up: 770"):
        needs(narrow, Deployment(tp=16))


# S12
def test_experts_in_mxfp4_are_dealt_out_in_whole_blocks() -> None:
    (module,) = (m for m in named(load("gpt-oss-120b"), tp=8) if "experts" in m)
    assert module == "experts (fewer on the last GPU)"
    found = named(load("gpt-oss-120b"), tp=8)[module]
    assert found == {"moe_mxfp4_topk4_e128_h2880_i384"}


# S13
@pytest.mark.parametrize(
    ("model", "key"), [("phi-4-14b", "rope_parameters"), ("phi-4-14b", "rope_scaling")]
)
def test_a_part_that_turns_is_read_where_transformers_5_writes_it(
    model: str, key: str
) -> None:
    stated = {key: {"rope_type": "default", "partial_rotary_factor": 0.75}}
    found = named(with_figures(model, **stated))["RoPE"]
    assert found == {"rope_with_cos_sin_cache_neox_style_d128_rd96"}


# S14
def test_one_state_serves_both_stages() -> None:
    entries = {entry.need.module: entry for entry in covered(load("nemotron-h-8b"))}
    assert entries["Mamba, prefill"].state.is_there
    decode = entries["Mamba, decode"]
    assert not decode.state.is_there
    assert "its state is bfloat16, the model's is float32" in decode.note
    half = with_figures("nemotron-h-8b", mamba_ssm_cache_dtype="bfloat16")
    entries = {entry.need.module: entry for entry in covered(half)}
    assert entries["Mamba, decode"].state.is_there
    assert not entries["Mamba, prefill"].state.is_there


def test_an_append_has_the_dtype_of_the_cache() -> None:
    found = named(load("llama-3.1-8b"), kv_dtype="float8_e4m3fn")
    name = "append_paged_kv_cache_kve4m3_kv8_d128_ps64"
    assert found["append to the cache"] == {name}


def test_tokens_go_to_the_gpus_of_their_experts_and_back() -> None:
    found = named(load("qwen3-30b-a3b"), tp=8, ep=8)
    name = "moe_dispatch_ep8_topk8_e128_h2048"
    assert found["tokens to the GPUs of their experts"] == {name}
    assert "experts' outputs back to their tokens" in found
    assert found["logits of all GPUs"] == {"allgather_tp8_h151936"}
