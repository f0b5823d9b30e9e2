"""Causal convolutions of each channel."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "causal_conv1d",
    name_tokens={"d": "dim", "w": "width"},
    figures={"width": Figure(("linear_conv_kernel_dim", "conv_kernel"))},
    absent={"flashinfer": "FlashInfer has no causal convolution"},
)
