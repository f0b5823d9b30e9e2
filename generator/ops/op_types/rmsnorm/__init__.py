"""RMS norms: plain, of a sum, Gemma's; to e4m3, with SiLU."""

from __future__ import annotations

from generator.ops.spec import EPS_WORDS, Figure, OpSpec

SPEC = OpSpec(
    "rmsnorm",
    name_tokens={"h": "hidden_size"},
    name_words={
        "gemma": ("unit_offset", True),
        **EPS_WORDS,
        "quant": ("quantized", True),
        "silu": ("activation", "silu"),
    },
    constants={"eps": None, "unit_offset": False},
    variant_constants=("quantized", "activation"),
    figures={
        "hidden_size": Figure(
            (
                "hidden_size",
                "head_dim",
                "kv_lora_rank",
                "q_lora_rank",
                "mamba_head_dim",
                # of queries and keys that are normalised over all heads together
                "num_attention_heads*head_dim",
                "num_key_value_heads*head_dim",
            ),
            takes="any",
        )
    },
)
