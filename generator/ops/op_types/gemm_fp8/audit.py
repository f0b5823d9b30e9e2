"""Audit sizes of float8 products, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import varied_rows


def reduced(axes: Axes) -> Axes:
    """Return few blocks, the last of the output's columns a part of one."""
    return _small(axes, 320, 512)


def tiny(axes: Axes) -> Axes:
    """Return fewer blocks."""
    return _small(axes, 192, 256)


def _small(axes: Axes, n: int, k: int) -> dict[str, int]:
    if "num_k_blocks" not in axes:
        return {"batch_size": 3, "N": n // 4, "K": k // 4}
    blocks = {"num_k_blocks": k // 128, "num_n_blocks": -(-n // 128)}
    return {"N": n, "K": k, **blocks}


varied = varied_rows
