"""Audit sizes of gated norms, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def tiny(axes: Axes) -> Axes:
    """Return shorter rows, of as many groups."""
    if "num_groups" not in axes:
        return {"hidden_size": 64}
    return {"hidden_size": 32 * axes["num_groups"], "group_size": 32}


varied = varied_rows
