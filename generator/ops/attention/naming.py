"""Names of grouped-query attention, paged or not, parsed; imports no torch."""

from __future__ import annotations

from generator.ops.spec import Figure

HEAD_TOKENS = {"h": "num_qo_heads", "kv": "num_kv_heads", "d": "head_dim"}
HEAD_FIGURES = {
    "num_qo_heads": Figure(("num_attention_heads",), "tp"),
    "num_kv_heads": Figure(
        ("num_key_value_heads", "num_global_key_value_heads"), "tp", "any"
    ),
    "head_dim": Figure(("head_dim", "global_head_dim"), takes="any"),
}
"""Axis → the figures of a model's config that it is."""
MASK_WORDS = {
    "causal": ("is_causal", True),
    "noncausal": ("noncausal", True),
    "alibi": ("alibi", True),
    "fp16": ("fp16", True),
}
MASK_NUMBERS = {"w": "window_left", "cap": "logits_soft_cap"}
MASK_CONSTANTS = ("window_left", "logits_soft_cap", "noncausal", "alibi", "fp16")
"""Constants of variants, of which a definition has those that its name says."""
