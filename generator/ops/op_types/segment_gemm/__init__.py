"""Products of segments of rows, each with its own weight."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "segment_gemm",
    name_tokens={"k": "K", "n": "N"},
    kernels={"segment_gemm_": "flashinfer.gemm.SegmentGEMMWrapper"},
    absent={"sglang": "SGLang's kernels for adapters take another layout"},
)
