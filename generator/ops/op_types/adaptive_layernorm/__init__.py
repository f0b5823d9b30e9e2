"""Layer norms whose scale and shift come from a condition, as in diffusion transformers."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "adaptive_layernorm",
    name_tokens={"h": "hidden_size"},
    constants={"eps": 1e-06},
    absent={
        "flashinfer": "FlashInfer's layer norm has one scale and shift for all rows"
    },
)
