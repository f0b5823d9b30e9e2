"""Grouped-query attention within chunks, as in Llama 4."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "chunked_attention",
    name_tokens={"h": "num_qo_heads", "kv": "num_kv_heads", "d": "head_dim"},
    figures={
        "num_qo_heads": Figure(("num_attention_heads",), "tp"),
        "num_kv_heads": Figure(("num_key_value_heads",), "tp"),
        "head_dim": Figure(("head_dim",)),
    },
    name_constants={"c": "attention_chunk_size"},
    constants={"attention_chunk_size": None},
)
