"""Low-rank adapters of a batch's tokens: shrinking to a rank, and expanding from it."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "lora",
    name_tokens={"r": "rank", "k": "in_features", "n": "out_features"},
    absent={
        "flashinfer": "FlashInfer's SegmentGEMM serves fp16 segments: segment_gemm"
    },
)
