"""Families that see an image beside their text: plain data, without torch."""

from __future__ import annotations

from dataclasses import replace

from generator.parity.recipe import FINAL, Family, Stage
from generator.parity.stages import (
    ATTENTION,
    INPUT,
    K_NORM,
    MLP,
    MOE,
    OUT,
    Q_NORM,
    QKV_FUSED,
    ROPE_NORMED,
)
from generator.parity.tiny import TINY, TINY_MOE

# Qwen3-VL: a tower with RoPE in two dimensions; features of its first layers are added
# to the first layers of the text
_VISUAL = "model.visual"
_H, _I = "{hidden_size}", "{intermediate_size}"


def _merger(name: str, path: str, reads: str, size: str) -> tuple[Stage, ...]:
    """Return the stages that make one row for the text of four patches."""
    merged, down = f"{name}_m", f"{path}.linear_fc2"
    return (
        Stage(
            f"{name}_norm",
            "layer_norm",
            reads,
            f"{name}_x",
            f"{path}.norm",
            f"=layernorm_h{size}",
        ),
        Stage(
            f"{name}_fc1",
            "linear",
            f"{name}_x",
            merged,
            f"{path}.linear_fc1",
            "=gemm_bf16_n{merged_size}_k{merged_size}",
        ),
        Stage(
            f"{name}_act", "plain_activation", merged, f"{name}_g", path, "", f"{down}<"
        ),
        Stage(
            f"{name}_fc2",
            "linear",
            f"{name}_g",
            name,
            down,
            "=gemm_bf16_n{out_hidden_size}_k{merged_size}",
        ),
    )


_VISION_BLOCK = (
    Stage("v_norm1", "layer_norm", "h", "x", "norm1", f"=layernorm_h{_H}"),
    Stage(
        "v_qkv", "linear", "x", "q k v", "attn.qkv", f"=gemm_bf16_n{{qkv_size}}_k{_H}"
    ),
    Stage(
        "v_rope",
        "rope",
        "q k",
        "q_r k_r",
        "rope",
        "=rope_with_cos_sin_cache_neox_style_d{head_dim}_rd{head_dim}",
    ),
    Stage(
        "v_attention",
        "whole_attention",
        "q_r k_r v",
        "a",
        "attn",
        "=gqa_ragged_prefill_noncausal_h{num_heads}_kv{num_heads}_d{head_dim}",
        "attention",
    ),
    Stage("v_proj", "linear", "a", "o", "attn.proj", f"=gemm_bf16_n{_H}_k{_H}"),
    Stage("v_residual", "add", "h o", "r", truth="norm2<"),
    Stage("v_norm2", "layer_norm", "r", "y", "norm2", f"=layernorm_h{_H}"),
    Stage("v_fc1", "linear", "y", "u", "mlp.linear_fc1", f"=gemm_bf16_n{_I}_k{_H}"),
    Stage("v_act", "plain_activation", "u", "g", "mlp", "", "mlp.linear_fc2<"),
    Stage("v_fc2", "linear", "g", "d", "mlp.linear_fc2", f"=gemm_bf16_n{_H}_k{_I}"),
    Stage("v_output", "add", "r d", "out", truth="."),
)
_VISION = Family(
    "",
    {"": _VISION_BLOCK},
    {},
    {},
    published={
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_heads": 16,
        "head_dim": 72,
        "qkv_size": 3456,
        "merged_size": 4608,
        "out_hidden_size": 4096,
        "patch_values": 1536,
    },
    base=_VISUAL,
    layers="blocks",
    embed=Stage(
        "v_patches",
        "linear",
        "pixels",
        "p",
        f"{_VISUAL}.patch_embed.proj",
        f"=gemm_bf16_n{_H}_k{{patch_values}}",
        f"{_VISUAL}.patch_embed",
    ),
    entry=(
        Stage(
            "v_places", "image_places", "p", "h", _VISUAL, "", f"{_VISUAL}.blocks.0<"
        ),
    ),
    final=(
        *_merger("deep0", f"{_VISUAL}.deepstack_merger_list.0", "h0", "{merged_size}"),
        *_merger("image", f"{_VISUAL}.merger", "h", _H),
    ),
)
_TEXT = "model.language_model"
_EYED_MIXER = (
    INPUT,
    QKV_FUSED,
    Q_NORM,
    K_NORM,
    replace(ROPE_NORMED, needs="=mrope_interleaved_t24_y20_x20_d128_rd128"),
    ATTENTION,
    OUT,
)
_VISION_TINY = {
    "model_type": "qwen3_vl_vision",
    "depth": 2,
    "hidden_size": 72,
    "intermediate_size": 112,
    "num_heads": 1,
    "in_channels": 3,
    "patch_size": 4,
    "temporal_patch_size": 2,
    "spatial_merge_size": 2,
    "out_hidden_size": 64,
    "num_position_embeddings": 64,
    "deepstack_visual_indexes": [0],
}
QWEN3_VL = Family(
    "qwen3-vl-8b",
    {"": _EYED_MIXER},
    {"dense": MLP},
    {**TINY, "head_dim": 32},
    {
        "model_type": "qwen3_vl_text",
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 5e6,
            "mrope_section": [24, 20, 20],
            "mrope_interleaved": True,
        },
    },
    auto="AutoModelForImageTextToText",
    base=_TEXT,
    around={
        "model_type": "qwen3_vl",
        "vision_config": _VISION_TINY,
        "image_token_id": 318,
        "video_token_id": 319,
        "vision_start_token_id": 1,
        "vision_end_token_id": 2,
    },
    senses="image",
    tower=_VISION,
    embed=Stage(
        "embed", "embedding", "tokens", "t", f"{_TEXT}.embed_tokens", "embedding"
    ),
    entry=(Stage("image_joins", "join", "t image", "h", truth=f"{_TEXT}.layers.0<"),),
    joins=(
        (Stage("deep0_joins", "join_add", "h deep0", "h", truth=f"{_TEXT}.layers.1<"),),
    ),
    final=(replace(FINAL[0], at=f"{_TEXT}.norm"), FINAL[1]),
)
QWEN3_VL_MOE = replace(
    QWEN3_VL,
    model="qwen3-vl-235b-a22b",
    feeds={"moe": MOE},
    tiny={**TINY_MOE, "head_dim": 32, "num_experts": 16},
    facts={**QWEN3_VL.facts, "model_type": "qwen3_vl_moe_text"},
    around={
        **QWEN3_VL.around,
        "model_type": "qwen3_vl_moe",
        "vision_config": {**_VISION_TINY, "model_type": "qwen3_vl_moe_vision"},
    },
)
