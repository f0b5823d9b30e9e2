"""The residual stream plus what a layer adds to it, in bfloat16."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "residual_add",
    name_tokens={"h": "hidden_size"},
    figures={"hidden_size": Figure(("hidden_size", "d_model"))},
    absent={
        "flashinfer": "FlashInfer adds a residual only within its norms",
        "sglang": "SGLang adds a residual only within its norms",
    },
)
