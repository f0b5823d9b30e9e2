"""Rows of a product plus a bias, where the product's kernel does not add it."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "bias_add",
    name_tokens={"n": "features"},
    absent={
        "flashinfer": "FlashInfer has no sum of rows and a bias",
        "sglang": "SGLang adds a bias within its products",
    },
)
