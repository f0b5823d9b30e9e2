"""Audit sizes of sums, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def reduced(axes: Axes) -> Axes:
    """Return short rows: every column is for itself."""
    return {"features": 320}


def tiny(axes: Axes) -> Axes:
    """Return shorter rows."""
    return {"features": 96}


varied = varied_rows
