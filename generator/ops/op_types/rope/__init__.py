"""RoPE: from a cache, from positions, of normalised heads."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "rope",
    name_tokens={
        "h": "num_qo_heads",
        "kv": "num_kv_heads",
        "d": "head_size",
        "rd": "rotary_dim",
    },
    figures={
        "num_qo_heads": Figure(("num_attention_heads",), "tp"),
        "num_kv_heads": Figure(("num_key_value_heads",), "tp"),
    },
    name_words={
        "neox": ("is_neox", True),
        "gptj": ("is_neox", False),
        "sectioned": ("axes_interleaved", False),
        "interleaved": ("axes_interleaved", True),
        "gemma": ("unit_offset", True),
        "rmsnorm": ("unit_offset", False),
        "1em5": ("eps", 1e-5),
        "1em6": ("eps", 1e-6),
        "llama31": ("llama31", True),
        "yarn": ("yarn", True),
        "deepseek": ("deepseek", True),
    },
    name_constants={
        "t": "temporal",
        "y": "height",
        "x": "width",
        "theta": "rope_theta",
        "scale": "rope_scale",
    },
    variant_constants=(
        "axes_interleaved",
        "temporal",
        "height",
        "width",
        "unit_offset",
        "eps",
        "llama31",
        "yarn",
        "deepseek",
        "rope_theta",
        "rope_scale",
    ),
    constants={"is_neox": True},
)
