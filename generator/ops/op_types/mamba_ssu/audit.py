"""Audit sizes of state updates."""

from __future__ import annotations

from generator.ops.axes import Axes


def reduced(axes: Axes) -> Axes:
    """Return few groups of as many heads; the bounds are for a dstate of 128."""
    ratio = axes["nheads"] // axes["ngroups"]
    return {"nheads": 2 * ratio, "ngroups": 2, "head_dim": 16}


def tiny(axes: Axes) -> Axes:
    """Return few heads and short states."""
    return {"nheads": 4, "ngroups": 2, "head_dim": 16, "dstate": 32}
