"""Keys of configs that the map passed over: each error has a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.models.config import config_of, load, read_config
from generator.models.coverage import State
from generator.models.modules import needs, unplaced
from generator.models.parallel import Deployment
from tests.unit.models.figured import FP8, NEMOTRON_3, covered, named, with_figures

BESIDE_TEXT = "what the model has beside its text model"


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
