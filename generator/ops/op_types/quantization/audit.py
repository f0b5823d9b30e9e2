"""Audit sizes of rows, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def reduced(axes: Axes) -> Axes:
    """Return a few blocks, as many times shorter as the row."""
    length = 768
    blocks = axes["num_blocks"] * length // axes["K"]
    return {"K": length, "K_packed": length // 2, "num_blocks": blocks}


varied = varied_rows
