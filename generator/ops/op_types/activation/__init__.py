"""Activations of MLPs: gated SiLU, GELU, clipped SiLU, squared ReLU."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "activation",
    name_tokens={"i": "intermediate_size"},
    name_words={
        "gelu": ("gelu", True),
        "tanh": ("tanh", True),
        "relu2": ("relu2", True),
        "oai": ("oai", True),
    },
    name_constants={"clamp": "limit"},
    variant_constants=("gelu", "tanh", "relu2", "oai", "limit"),
    figures={
        # of a dense layer, of which Llama 4 says it otherwise, or of an expert
        "intermediate_size": Figure(
            ("intermediate_size", "moe_intermediate_size", "intermediate_size_mlp"),
            "tp",
            takes="any",
        )
    },
)
