"""Matrix products C = A·Bᵀ in float16 and bfloat16."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "gemm",
    name_tokens={"n": "N", "k": "K"},
    kernels={"gemm_bf16_": "flashinfer.gemm.mm_bf16"},
)
