"""Causal convolutions of each channel."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "causal_conv1d",
    name_tokens={"d": "dim", "w": "width"},
    name_words={"linear": ("is_linear", True), "gated": ("is_gated", True)},
    variant_constants=("is_linear", "is_gated"),
    figures={
        "width": Figure(("linear_conv_kernel_dim", "conv_kernel", "conv_L_cache"))
    },
    absent={"flashinfer": "FlashInfer has no causal convolution"},
)
