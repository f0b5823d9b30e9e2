"""Writing a cache by slot: keys and values, to e4m3, to NVFP4; latents; copying blocks."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "kv_store",
    name_tokens={
        "kv": "num_kv_heads",
        "d": "head_dim",
        "ps": "page_size",
        "ckv": "latent_dim",
        "kpe": "rope_dim",
    },
    name_words={"e4m3": ("quantized", True)},
    variant_constants=("quantized",),
    figures={
        "num_kv_heads": Figure(("num_key_value_heads",), "tp"),
        "head_dim": Figure(("head_dim",)),
        "latent_dim": Figure(("kv_lora_rank",)),
        "rope_dim": Figure(("qk_rope_head_dim",)),
    },
    absent={
        "flashinfer": "FlashInfer's appends find a slot by page tables: page_append has them"
    },
)
