"""What the map said of models and was not so: each error has a test."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from generator.dataset.paths import discover_definitions
from generator.models.config import Config, config_of, load, read_config
from generator.models.coverage import ModuleCoverage, State, coverage
from generator.models.modules import needs, unplaced
from generator.models.parallel import Deployment
from generator.problems import Failure
from generator.rules.load import load_file
from tests.builders import ROOT
from tests.unit.models.mapped import mapped

FP8: dict[str, Any] = {"quant_method": "fp8", "weight_block_size": [128, 128]}
BESIDE_TEXT = "what the model has beside its text model"
NEMOTRON_3 = {
    "model_type": "nemotron_h",
    "hidden_size": 2688,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "intermediate_size": 1856,
    "num_hidden_layers": 6,
    "vocab_size": 131072,
    "hybrid_override_pattern": "MEM*EM",
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "n_routed_experts": 128,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1856,
    "moe_shared_expert_intermediate_size": 3712,
    "n_shared_experts": 1,
    "routed_scaling_factor": 2.5,
    "layer_norm_epsilon": 1e-5,
}


def with_figures(model: str | Config, **figures: Any) -> Config:
    config = load(model) if isinstance(model, str) else model
    return replace(config, figures={**config.figures, **figures}, asked=set())


def named(config: Config, **options: Any) -> dict[str, set[str]]:
    """Return module → the names of what it needs."""
    found: dict[str, set[str]] = {}
    for need in needs(config, Deployment(**options)):
        found.setdefault(need.module, set()).add(need.name)
    return found


def covered(config: Config, **options: Any) -> list[ModuleCoverage]:
    found = discover_definitions(ROOT)
    return coverage(config, Deployment(**options), ROOT, found, {})


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


def test_the_published_gemma_3_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(
        '{"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",'
        ' "mm_tokens_per_image": 256, "image_token_index": 262144, "text_config":'
        ' {"hidden_size": 5376, "intermediate_size": 21504, "model_type":'
        ' "gemma3_text", "num_attention_heads": 32, "num_hidden_layers": 62,'
        ' "num_key_value_heads": 16, "query_pre_attn_scalar": 168, "head_dim": 128,'
        ' "rope_scaling": {"factor": 8.0, "rope_type": "linear"},'
        ' "sliding_window": 1024, "vocab_size": 262208}, "vision_config": {}}'
    )
    published = load(str(file))
    rows = [need.name for need in needs(published, Deployment())]
    assert rows == [need.name for need in needs(load("gemma-3-27b"), Deployment())]
    # towers that the file has no figures of are transformers' defaults, not none
    assert unplaced(published, Deployment()) == [BESIDE_TEXT]


@pytest.mark.parametrize("limit", ["Infinity", '{"__float__": "Infinity"}'])
def test_infinity_is_read_as_transformers_writes_it(tmp_path: Path, limit: str) -> None:
    figures = "".join(
        f', "{key}": {value if not isinstance(value, str) else repr(value)}'
        for key, value in NEMOTRON_3.items()
    ).replace("'", '"')
    file = tmp_path / "config.json"
    file.write_text(f'{{"time_step_limit": [0.0, {limit}]{figures}}}')
    assert read_config(file)
    assert named(load(str(file))) == named(config_of("", NEMOTRON_3))


def test_latent_attention_without_rope_has_no_row_of_it() -> None:
    assert "RoPE" not in named(load("kimi-linear-48b-a3b"))
    assert "RoPE" in named(load("deepseek-v3"))


def test_a_sum_that_no_norm_is_fused_with_has_its_family() -> None:
    assert named(load("olmo-3-7b"))["the residual"] == {"residual_add_h4096"}


def test_numbers_that_multiply_have_rows_and_unfuse_the_norm() -> None:
    found = named(load("granite-4.1-8b"))
    assert found["embeddings times a number"] == {"multiply_h4096"}
    assert found["logits over a number"] == {"divide_v100352"}
    assert "norms that add the residual" not in found
    assert found["norms behind the residual"] == {"rmsnorm_eps_1em5_h4096"}
    # of 1, which changes nothing, there are none
    plain = dict.fromkeys(
        ("embedding_multiplier", "residual_multiplier", "logits_scaling"), 1.0
    )
    found = named(with_figures("granite-4.1-8b", **plain))
    assert not {"embeddings times a number", "logits over a number"} & found.keys()
    assert "norms that add the residual" in found


def test_a_gate_by_a_sigmoid_is_not_made_as_one_by_silu() -> None:
    entries = covered(load("kimi-linear-48b-a3b"))
    (entry,) = (e for e in entries if e.need.op_type == "gated_rmsnorm")
    assert entry.need.name == "gated_rmsnorm_sigmoid_eps_1em5_h128"
    assert entry.state is State.NO_FAMILY


@pytest.mark.parametrize("towers", [{}, {"vision_config": {}}, {"vision_config": None}])
def test_towers_without_figures_are_said(towers: dict[str, Any]) -> None:
    text = {**load("gemma-3-27b").figures, "model_type": "gemma3_text"}
    text = {k: v for k, v in text.items() if not k.endswith("_config")}
    whole = {"model_type": "gemma3", "text_config": text, **towers}
    assert unplaced(config_of("whole", whole), Deployment()) == [BESIDE_TEXT]
    assert unplaced(config_of("text", text), Deployment()) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attn_logit_softcapping", 30.0),
        ("final_logit_softcapping", 30.0),
        ("embedding_multiplier", 12.0),
        ("residual_multiplier", 0.22),
        ("logits_scaling", 8.0),
        ("attention_out_bias", True),
        ("lm_head_bias", True),
        ("moe_latent_size", 1024),
    ],
)
def test_a_key_of_other_architectures_adds_no_row(key: str, value: Any) -> None:
    config = with_figures("qwen3-30b-a3b", **{key: value})
    assert named(config) == named(load("qwen3-30b-a3b"))
    assert unplaced(config, Deployment()) == [f"what {key!r} changes"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, []),
        ({"fmt": "e4m3", "scale_fmt": "float", "activation_scheme": "dynamic"}, []),
        ({"scale_fmt": "ue8m0"}, ["scales of float8 that are powers of two"]),
        ({"kv_scheme": "fp8"}, ["what 'quantization_config.kv_scheme' changes"]),
        ({"fmt": "e5m2"}, ["what 'quantization_config.fmt' changes"]),
    ],
)
def test_what_a_quantisation_states_is_read_or_said(
    more: dict[str, Any], said: list[str]
) -> None:
    config = with_figures("qwen3-8b", quantization_config={**FP8, **more})
    assert unplaced(config, Deployment()) == said


def test_the_layers_that_no_window_reaches_are_read() -> None:
    config = with_figures("qwen3-8b", max_window_layers=36, sliding_window=None)
    assert unplaced(config, Deployment()) == []
