"""Products of 8-bit activations and weights: scales of rows, of columns, of tensors."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "gemm_w8a8",
    name_tokens={"n": "N", "k": "K"},
    absent={
        "flashinfer": "FlashInfer's 8-bit products on Hopper have scales of blocks, or "
        "are bmm_fp8, which gemm_fp8 has"
    },
    domains={"x_scale": "non-negative", "weight_scale": "non-negative"},
)
