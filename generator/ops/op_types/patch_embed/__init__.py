"""Patches of images as rows: a convolution whose stride is its width, as a product."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "patch_embed",
    name_tokens={
        "c": "channels",
        "s": "image_size",
        "p": "patch_size",
        "h": "hidden_size",
    },
    name_words={"bias": ("has_bias", True)},
    variant_constants=("has_bias",),
    absent={
        "flashinfer": "FlashInfer has no convolutions of images",
        "sglang": "SGLang calls PyTorch's convolution, or a linear layer",
    },
)
