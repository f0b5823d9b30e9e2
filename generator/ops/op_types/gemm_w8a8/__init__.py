"""Products of 8-bit activations and weights: scales of rows, of columns, of tensors."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "gemm_w8a8",
    name_tokens={"n": "N", "k": "K"},
    absent={
        "flashinfer": "on Hopper its 8-bit products scale blocks, or are gemm_fp8's bmm_fp8"
    },
    domains={"x_scale": "non-negative", "weight_scale": "non-negative"},
)
