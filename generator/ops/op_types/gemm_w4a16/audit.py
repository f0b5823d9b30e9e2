"""Audit sizes of products with int4 weights."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def reduced(axes: Axes) -> Axes:
    """Return three groups and few columns."""
    words = {"words_k": 384 // 8, "words_n": 8, "bytes_k": 192, "num_groups": 3}
    return {"N": 64, "K": 384, **{a: n for a, n in words.items() if a in axes}}


varied = varied_rows
