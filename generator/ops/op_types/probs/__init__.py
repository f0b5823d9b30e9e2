"""Softmax of rows; renormalising or masking what samplers keep."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "probs",
    name_tokens={"v": "vocab_size"},
    figures={"vocab_size": Figure(("vocab_size",), "tp")},
    domains={"probs": "probabilities"},
)
