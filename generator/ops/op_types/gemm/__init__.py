"""Matrix products C = A·Bᵀ in float16 and bfloat16, of batches, with bias, to float32."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "gemm",
    name_tokens={"b": "batch_size", "n": "N", "k": "K"},
    kernels={"gemm_bf16_n": "flashinfer.gemm.mm_bf16"},
)
