"""Attention over chosen blocks of keys."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "block_sparse",
    name_tokens={
        "r": "block_rows",
        "c": "block_columns",
        "h": "num_qo_heads",
        "kv": "num_kv_heads",
        "d": "head_dim",
    },
    figures={
        "num_qo_heads": Figure(("num_attention_heads",), "tp"),
        "num_kv_heads": Figure(("num_key_value_heads",), "tp"),
        "head_dim": Figure(("head_dim",)),
    },
)
