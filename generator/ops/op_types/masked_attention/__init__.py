"""Attention with numbers added to its logits: masks of padding, relative positions of T5."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "masked_attention",
    name_tokens={"h": "num_heads", "d": "head_dim"},
    absent={
        "flashinfer": "FlashInfer's masks are bits, the same for all heads",
        "sglang": "SGLang calls PyTorch's attention with a mask",
    },
)
