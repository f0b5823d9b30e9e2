"""Latent attention before compression: causal prefill."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "mla_ragged",
    name_tokens={"h": "num_qo_heads", "qk": "qk_dim", "vo": "vo_dim"},
    figures={
        "num_qo_heads": Figure(("num_attention_heads",), "tp"),
        "qk_dim": Figure(("qk_nope_head_dim", "qk_rope_head_dim"), takes="sum"),
        "vo_dim": Figure(("v_head_dim",)),
    },
    name_words={"causal": ("is_causal", True)},
)
