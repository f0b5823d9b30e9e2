"""RoPE and scaling to 8 bits, and appending."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "rope_quantize",
    name_tokens={
        "h": "num_qo_heads",
        "kv": "num_kv_heads",
        "rope": "rope_dim",
        "nope": "nope_dim",
        "ps": "page_size",
    },
    figures={
        "num_qo_heads": Figure(("num_attention_heads",), "tp"),
        "num_kv_heads": Figure(("num_key_value_heads",), "tp"),
    },
    name_words={"neox": ("is_neox", True), "gptj": ("is_neox", False)},
    constants={"is_neox": True},
    absent={"sglang": "SGLang calls FlashInfer's kernels for this"},
)
