"""Grouped-query attention over contiguous keys: causal prefill."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "gqa_ragged",
    name_tokens={"h": "num_qo_heads", "kv": "num_kv_heads", "d": "head_dim"},
    figures={
        "num_qo_heads": Figure(("num_attention_heads",), "tp"),
        "num_kv_heads": Figure(
            ("num_key_value_heads", "num_global_key_value_heads"), "tp", "any"
        ),
        "head_dim": Figure(("head_dim", "global_head_dim"), takes="any"),
    },
    name_words={
        "causal": ("is_causal", True),
        "noncausal": ("noncausal", True),
        "alibi": ("alibi", True),
        "fp16": ("fp16", True),
    },
    name_constants={"w": "window_left", "cap": "logits_soft_cap"},
    variant_constants=(
        "window_left",
        "logits_soft_cap",
        "noncausal",
        "alibi",
        "fp16",
    ),
)
