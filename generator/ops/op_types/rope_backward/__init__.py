"""Gradients of rotary position embedding: heads turned back by each token's angles."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "rope_backward",
    name_tokens={
        "h": "num_qo_heads",
        "kv": "num_kv_heads",
        "d": "head_dim",
    },
    figures={
        "num_qo_heads": Figure(("num_attention_heads",)),
        "num_kv_heads": Figure(("num_key_value_heads",)),
        "head_dim": Figure(("head_dim",)),
    },
    absent={"sglang": "SGLang has no backward passes"},
)
