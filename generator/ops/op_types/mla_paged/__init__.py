"""Latent attention over a paged cache: decode, causal prefill, trees of drafts."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "mla_paged",
    name_tokens={
        "h": "num_qo_heads",
        "ckv": "head_dim_ckv",
        "kpe": "head_dim_kpe",
        "ps": "page_size",
    },
    figures={
        "num_qo_heads": Figure(("num_attention_heads",), "tp"),
        "head_dim_ckv": Figure(("kv_lora_rank",)),
        "head_dim_kpe": Figure(("qk_rope_head_dim",)),
    },
    name_words={"causal": ("is_causal", True), "custom": ("custom_mask", True)},
    variant_constants=("custom_mask",),
)
