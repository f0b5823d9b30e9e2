"""All-reduce, residual and RMS norm."""

from __future__ import annotations

from generator.ops.spec import EPS_WORDS, Figure, OpSpec

SPEC = OpSpec(
    "comm",
    name_words=EPS_WORDS,
    name_tokens={"tp": "world_size", "h": "hidden_size"},
    constants={"eps": None},
    figures={"hidden_size": Figure(("hidden_size",))},
    absent={"sglang": "SGLang's all-reduce is in its kernel wheel"},
)
