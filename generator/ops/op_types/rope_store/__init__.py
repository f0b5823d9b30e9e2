"""RoPE and the store of keys and values in one call, of normalised heads where models do."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "rope_store",
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
        "gptj": ("is_neox", False),
        "gemma": ("unit_offset", True),
        "rmsnorm": ("unit_offset", False),
        "1em5": ("eps", 1e-5),
        "1em6": ("eps", 1e-6),
    },
    variant_constants=("unit_offset", "eps"),
    constants={"is_neox": True},
)
