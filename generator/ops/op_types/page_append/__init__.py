"""Appending keys and values, or latents, to a paged cache."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "page_append",
    name_tokens={
        "kv": "num_kv_heads",
        "d": "head_dim",
        "ckv": "head_dim_ckv",
        "kpe": "head_dim_kpe",
        "ps": "page_size",
    },
    figures={
        "num_kv_heads": Figure(("num_key_value_heads",), "tp"),
        "head_dim": Figure(("head_dim",)),
        "head_dim_ckv": Figure(("kv_lora_rank",)),
        "head_dim_kpe": Figure(("qk_rope_head_dim",)),
    },
    absent={"sglang": "SGLang's store_cache is in its kernel wheel"},
)
