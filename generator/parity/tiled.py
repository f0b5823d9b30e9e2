"""Llama 3.2 Vision: layers of the text attend to an image, behind gates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from generator.parity.recipe import FINAL, Family, Stage
from generator.parity.stages import INPUT, MIXER, MLP, QKV
from generator.parity.tiny import LLAMA3_ROPE, TINY
from generator.parity.unmapped import figures, named

_V, _VI = "{v_hidden}", "{v_intermediate}"
_H = "{hidden_size}"
_SQUARE, _NORMED = f"=gemm_bf16_n{_V}_k{_V}", f"=layernorm_eps_1em5_h{_V}"
_HEADS = "gqa_ragged_prefill_noncausal_h{%s}_kv{%s}_d{%s}"
_SEEN = f"={_HEADS}" % ("v_heads", "v_heads", "v_head_dim")
_CROSSED = f"={_HEADS}" % ("num_attention_heads", "num_key_value_heads", "head_dim")


def _block(add: str, *gates: str) -> tuple[Stage, ...]:
    """Return a layer of the tower; `add` is how it adds to the residual."""
    after, (first, last) = "post_attention_layernorm", gates
    return (
        Stage("v_norm1", "layer_norm", "h", "x", INPUT.at, _NORMED),
        Stage("v_qkv", "linear", "x", "q k v", QKV, f"=gemm_bf16_n{{v_qkv}}_k{_V}"),
        Stage(
            "v_attention",
            "padded_attention",
            "q k v",
            "a",
            "self_attn",
            _SEEN,
            "attention",
        ),
        Stage("v_o", "linear", "a", "o", "self_attn.o_proj", _SQUARE),
        Stage("v_residual", add, "h o", "r", first, "", f"{after}<"),
        Stage("v_norm2", "layer_norm", "r", "y", after, _NORMED),
        Stage("v_fc1", "linear", "y", "u", "mlp.fc1", f"=gemm_bf16_n{_VI}_k{_V}"),
        Stage("v_act", "plain_activation", "u", "g", "mlp", "", "mlp.fc2<"),
        Stage("v_fc2", "linear", "g", "d", "mlp.fc2", f"=gemm_bf16_n{_V}_k{_VI}"),
        Stage("v_output", add, "r d", "out", last, "", "."),
    )


_VISUAL = "model.vision_model"
_GLOBAL = f"{_VISUAL}.global_transformer.layers.0"
_TOWER = Family(
    "",
    {
        "": _block("add", "", ""),
        "gated": _block("gated_add", "gate_attn", "gate_ffn"),
    },
    {},
    {},
    published={
        "v_hidden": 1280,
        "v_intermediate": 5120,
        "v_heads": 16,
        "v_head_dim": 80,
        "v_qkv": 3840,
        "patch_values": 588,
        "seen_values": 7680,
    },
    base=_VISUAL,
    layers="transformer.layers global_transformer.layers",
    embed=Stage(
        "v_patches",
        "linear",
        "pixels",
        "p",
        f"{_VISUAL}.patch_embedding",
        f"=gemm_bf16_n{_V}_k{{patch_values}}",
        f"{_VISUAL}.pre_tile_positional_embedding<",
    ),
    entry=(
        Stage("v_places", "tile_places", "p", "t", "", "", f"{_VISUAL}.layernorm_pre<"),
        Stage(
            "v_first_norm", "layer_norm", "t", "t", f"{_VISUAL}.layernorm_pre", _NORMED
        ),
        Stage(
            "v_padding",
            "padded_rows",
            "t",
            "h",
            "",
            "",
            f"{_VISUAL}.transformer.layers.0<",
        ),
    ),
    joins=(
        (
            Stage(
                "v_on",
                "unchanged",
                "h",
                "h",
                "",
                "",
                f"{_VISUAL}.transformer.layers.1<",
            ),
        ),
        (
            Stage(
                "v_inner_norm",
                "layer_norm",
                "h",
                "n",
                f"{_VISUAL}.layernorm_post",
                _NORMED,
            ),
            Stage("v_places2", "tile_places_behind", "n", "h", "", "", f"{_GLOBAL}<"),
        ),
    ),
    final=(
        Stage(
            "v_gathered",
            "gathered",
            "h h0 h1",
            "f",
            "",
            "",
            "model.multi_modal_projector<",
        ),
        Stage(
            "projector",
            "linear",
            "f",
            "memory",
            "model.multi_modal_projector",
            f"=gemm_bf16_n{_H}_k{{seen_values}}",
        ),
    ),
)


def _whole(mixer: Iterable[Stage]) -> tuple[Stage, ...]:
    return named((*mixer, *MLP))


_CROSS, _AFTER = "cross_attn", "post_attention_layernorm"
_CROSS_LAYER = (
    *named((INPUT,)),
    Stage(
        "cross_q", "linear", "x", "cq", f"{_CROSS}.q_proj", f"=gemm_bf16_n{_H}_k{_H}"
    ),
    Stage(
        "cross_kv",
        "linear",
        "memory",
        "ck cv",
        f"{_CROSS}.k_proj {_CROSS}.v_proj",
        f"=gemm_bf16_n{{kv_size}}_k{_H}",
    ),
    *(
        Stage(
            f"cross_{of}_norm",
            "norm",
            f"c{of}",
            f"c{of}_n",
            f"{_CROSS}.{of}_norm",
            "=rmsnorm_eps_1em5_h{head_dim}",
        )
        for of in "qk"
    ),
    Stage(
        "cross_attention",
        "whole_attention",
        "cq_n ck_n cv",
        "a",
        _CROSS,
        _CROSSED,
        "attention",
    ),
    Stage("cross_o", "linear", "a", "o", f"{_CROSS}.o_proj", f"=gemm_bf16_n{_H}_k{_H}"),
    Stage(
        "cross_residual",
        "gated_add",
        "h o",
        "r",
        "cross_attn_attn_gate",
        "",
        f"{_AFTER}<",
    ),
    Stage("cross_mlp_norm", "norm", "r", "y", _AFTER, f"=rmsnorm_h{_H}"),
    *(of for of in named(MLP) if of.name in ("gate_up", "act", "down")),
    Stage("cross_output", "gated_add", "r d", "out", "cross_attn_mlp_gate", "", "."),
)
_TEXT = "model.language_model"
LLAMA_VISION = Family(
    "llama-3.2-11b-vision",
    {"": _whole(MIXER), "cross": _CROSS_LAYER},
    {},
    # heads are as long as hidden_size and their number make them
    {**TINY, "head_dim": None, "cross_attention_layers": [1]},
    {
        "model_type": "mllama_text_model",
        "rope_parameters": LLAMA3_ROPE,
        "pad_token_id": None,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    real={"num_hidden_layers": 2, "cross_attention_layers": [1]},
    published={
        **figures(
            "mllama_text_model",
            hidden_size=4096,
            intermediate_size=14336,
            num_hidden_layers=40,
            num_attention_heads=32,
            num_key_value_heads=8,
            head_dim=128,
            vocab_size=128256,
            rms_norm_eps=1e-5,
        ),
        "kv_size": 2048,
        # 8 tokens more than logits, for images
        "table_size": 128264,
    },
    auto="AutoModelForImageTextToText",
    base=_TEXT,
    around={
        "model_type": "mllama",
        "vision_config": {
            "model_type": "mllama_vision_model",
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_global_layers": 1,
            "attention_heads": 4,
            "num_channels": 3,
            "image_size": 16,
            "patch_size": 4,
            "max_num_tiles": 1,
            "supported_aspect_ratios": [[1, 1]],
            "intermediate_layers_indices": [0, 1],
            "vision_output_dim": 192,
        },
        "image_token_index": 321,
    },
    senses="tiles",
    tower=_TOWER,
    embed=Stage(
        "embed",
        "embedding",
        "tokens",
        "h",
        f"{_TEXT}.embed_tokens",
        f"=embedding_v{{table_size}}_h{_H}",
    ),
    final=named((replace(FINAL[0], at=f"{_TEXT}.norm"), FINAL[1])),
)
