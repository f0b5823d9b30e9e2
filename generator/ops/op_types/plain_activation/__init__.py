"""Activations of MLPs without a gate: GELU by the error function, by a tangent, quick."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "plain_activation",
    name_tokens={"i": "intermediate_size"},
    name_words={"tanh": ("tanh", True), "quick": ("quick", True)},
    variant_constants=("tanh", "quick"),
    figures={"intermediate_size": Figure(("intermediate_size",))},
    absent={"flashinfer": "FlashInfer's activations take rows with a gate"},
)
