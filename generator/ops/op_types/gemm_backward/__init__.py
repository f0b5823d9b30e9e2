"""Gradients of products C = A·Bᵀ for training: of activations and of weights."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "gemm_backward",
    name_tokens={"n": "N", "k": "K"},
    absent={
        "flashinfer": "FlashInfer has no backward passes",
        "sglang": "SGLang has no backward passes",
    },
)
