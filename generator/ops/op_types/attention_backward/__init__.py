"""Gradients of causal grouped-query attention, from its output and log-sum-exp."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "attention_backward",
    name_tokens={"h": "num_qo_heads", "kv": "num_kv_heads", "d": "head_dim"},
    figures={
        "num_qo_heads": Figure(("num_attention_heads", "n_head")),
        "num_kv_heads": Figure(("num_key_value_heads", "n_head")),
        "head_dim": Figure(("head_dim",)),
    },
    absent={
        "flashinfer": "FlashInfer has no backward passes",
        "sglang": "SGLang has no backward passes",
    },
)
