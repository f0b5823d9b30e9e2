"""Audit sizes of heads, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def reduced(axes: Axes) -> Axes:
    """Return shorter heads: their number is a constant of a reference."""
    if "nope_dim" in axes:
        return {"nope_dim": 20, "rope_dim": 12, "key_dim": 32}
    if "qkv_size" in axes:
        heads = axes["num_qo_heads"] + 2 * axes["num_kv_heads"]
        return {"head_dim": 20, "qkv_size": 20 * heads}
    return {"head_dim": 20}


varied = varied_rows
