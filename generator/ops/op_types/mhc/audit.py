"""Audit sizes of streams, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def reduced(axes: Axes) -> Axes:
    """Return short rows: each column is for itself."""
    return {"hidden_size": 96}


varied = varied_rows
