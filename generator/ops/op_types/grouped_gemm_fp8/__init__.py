"""Products of rows in float8 with the weight of their expert, scaled by blocks."""

from __future__ import annotations

from generator.ops.spec import OpSpec

_CONTIGUOUS = "flashinfer.gemm.group_deepgemm_fp8_nt_groupwise"
SPEC = OpSpec(
    "grouped_gemm_fp8",
    name_tokens={"e": "num_experts", "n": "N", "k": "K"},
    kernels={
        "grouped_gemm_fp8_contiguous_": _CONTIGUOUS,
        "grouped_gemm_fp8_masked_": "flashinfer.gemm.batch_deepgemm_fp8_nt_groupwise",
    },
    domains={"a_scale": "non-negative", "b_scale": "non-negative"},
)
