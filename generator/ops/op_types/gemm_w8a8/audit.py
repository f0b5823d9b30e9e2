"""Audit sizes of 8-bit products, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def reduced(axes: Axes) -> Axes:
    """Return more columns and more terms than the references take at a time."""
    return {"N": 4112, "K": 1088}


def tiny(axes: Axes) -> Axes:
    """Return few columns, and more terms than the references take at a time."""
    return {"N": 96, "K": 1088}


varied = varied_rows
