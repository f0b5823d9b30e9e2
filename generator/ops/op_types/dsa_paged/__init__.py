"""DeepSeek sparse attention: indexer, and attention over its tokens."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "dsa_paged",
    name_tokens={
        "h": ("num_qo_heads", "num_index_heads"),
        "d": "index_head_dim",
        "ckv": "head_dim_ckv",
        "kpe": "head_dim_kpe",
        "topk": "topk",
        "ps": "page_size",
    },
    figures={
        "num_qo_heads": Figure(("num_attention_heads",), "tp"),
        "head_dim_ckv": Figure(("kv_lora_rank",)),
        "head_dim_kpe": Figure(("qk_rope_head_dim",)),
    },
)
