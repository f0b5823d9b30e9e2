"""Audit sizes of embeddings, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def reduced(axes: Axes) -> Axes:
    """Return few columns; the rows stay, since workloads have tokens of all of them.

    The root of 40 is no bfloat16 number, as the roots of the models' lengths are none.
    """
    return {"hidden_size": 40}


def tiny(axes: Axes) -> Axes:
    """Return few rows and columns; the root of 200 is no bfloat16 number."""
    return {"vocab_size": 12, "hidden_size": 200}


varied = varied_rows
