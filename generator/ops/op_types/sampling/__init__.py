"""Sampling from probabilities or logits: top-k, top-p, min-p."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "sampling",
    name_tokens={"v": "vocab_size"},
    figures={"vocab_size": Figure(("vocab_size",), "tp")},
    domains={"probs": "probabilities"},
)
