"""Audit sizes of gradients of activations, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def reduced(axes: Axes) -> Axes:
    """Return short rows: every column is for itself."""
    return _of_length(axes, 320)


def tiny(axes: Axes) -> Axes:
    """Return shorter rows."""
    return _of_length(axes, 96)


def _of_length(axes: Axes, length: int) -> Axes:
    gated = {"gate_up_size": 2 * length} if "gate_up_size" in axes else {}
    return {"intermediate_size": length, **gated}


varied = varied_rows
