"""Audit sizes of latent attention, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.attention.audit import varied_sequences
from generator.ops.axes import Axes


def tiny(axes: Axes) -> Axes:
    """Return few heads and short vectors, keys longer than values."""
    return {"num_qo_heads": 3, "num_kv_heads": 3, "qk_dim": 48, "vo_dim": 32}


# positions and sequences are limits, heads are none
for_limits = tiny
varied = varied_sequences
