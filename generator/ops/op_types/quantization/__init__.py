"""Quantising to float8 and fp4 in blocks, and fp4 back."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "quantization",
    name_tokens={"k": "K"},
    kernels={
        f"{name}_": f"flashinfer.quantization.{name}"
        for name in ("mxfp4_quantize", "mxfp8_quantize", "nvfp4_quantize")
    },
    domains={"scales": "powers-of-two"},
    # its scales are float8
    without_domains=("nvfp4",),
)
