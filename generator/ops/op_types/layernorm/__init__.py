"""Layer norms with a scale and a bias in float32."""

from __future__ import annotations

from generator.ops.spec import EPS_WORDS, OpSpec

SPEC = OpSpec(
    "layernorm",
    name_tokens={"h": "hidden_size"},
    name_words=EPS_WORDS,
    constants={"eps": 1e-06},
)
