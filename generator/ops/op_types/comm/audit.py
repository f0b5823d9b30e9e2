"""Audit sizes of sums over ranks, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def tiny(axes: Axes) -> Axes:
    """Return shorter rows of as many ranks."""
    return {"hidden_size": 160}


for_limits = tiny


varied = varied_rows
