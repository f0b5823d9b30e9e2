"""Layer norms with a scale and a bias in float32."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "layernorm",
    name_tokens={"h": "hidden_size"},
    name_words={"1em5": ("eps", 1e-05)},
    constants={"eps": 1e-06},
)
