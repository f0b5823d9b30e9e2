"""Audit sizes of products, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def reduced(axes: Axes) -> Axes:
    """Return more columns than the references take at a time, and few terms."""
    if "batch_size" in axes:
        return {"batch_size": 3, "N": 96, "K": 64}
    return {"N": 4160, "K": 320}


def tiny(axes: Axes) -> Axes:
    """Return as many columns, and fewer terms."""
    return (
        {"batch_size": 3, "N": 96, "K": 64}
        if "batch_size" in axes
        else {"N": 4160, "K": 64}
    )


def unrounded(axes: Axes) -> Axes:
    """Return fewer columns: errors grow with the terms of a sum, so these stay."""
    return {"N": 4160}


varied = varied_rows
