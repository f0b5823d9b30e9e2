"""Matrix products in float8, scaled by blocks or tensors."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "gemm_fp8",
    name_tokens={"b": "batch_size", "n": "N", "k": "K"},
    kernels={"bmm_fp8_": "flashinfer.gemm.bmm_fp8"},
)
