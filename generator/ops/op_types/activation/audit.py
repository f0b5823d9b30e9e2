"""How an audit makes activations smaller, and what varies in its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def reduced(axes: Axes) -> Axes:
    """Return short rows: every column is for itself."""
    return {"intermediate_size": 768, "gate_up_size": 1536}


def tiny(axes: Axes) -> Axes:
    """Return shorter rows."""
    return {"intermediate_size": 160, "gate_up_size": 320}


varied = varied_rows
