"""Gradients of the activations of MLPs, for training: gated SiLU, GELU by a tangent."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "activation_backward",
    name_tokens={"i": "intermediate_size"},
    name_words={"gelu": ("gelu", True)},
    variant_constants=("gelu",),
    figures={"intermediate_size": Figure(("intermediate_size", "n_inner"))},
    absent={
        "flashinfer": "FlashInfer has no backward passes",
        "sglang": "SGLang has no backward passes",
    },
)
