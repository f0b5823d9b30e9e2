"""Gated activations: SiLU of the gate times the up projection."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "activation",
    name_tokens={"i": "intermediate_size"},
    figures={
        # of a dense layer or of an expert
        "intermediate_size": Figure(
            ("intermediate_size", "moe_intermediate_size"), "tp", takes="any"
        )
    },
)
