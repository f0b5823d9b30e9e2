"""Merging attention over parts of the keys by LSE."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "cascade_merge",
    name_tokens={"h": "num_heads", "d": "head_dim"},
    figures={
        "num_heads": Figure(("num_attention_heads",), "tp"),
        "head_dim": Figure(("head_dim",)),
    },
)
