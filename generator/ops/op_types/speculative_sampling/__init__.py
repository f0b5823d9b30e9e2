"""Speculative sampling of a chain of drafts."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "speculative_sampling",
    name_tokens={"v": "vocab_size"},
    figures={"vocab_size": Figure(("vocab_size",), "tp")},
    domains={"draft_probs": "probabilities", "target_probs": "probabilities"},
)
