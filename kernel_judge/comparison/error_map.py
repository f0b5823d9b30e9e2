"""Distribution of an output's error over its elements: a small histogram and grid.

Both are of |actual - expected| / allowed, the error in units of what the tolerance
allows, and of a bounded size, so that a line of results can hold them. torch is imported
where it is used: those who read results need the constants alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from kernel_judge.comparison.tolerance import Tolerance

SIDE = 16
"""Rows and columns of the grid at most."""

BINS = 16
"""Of the histogram: up to 1e-4, then half decades up to 1e3, then everything above."""

WITHIN = 9
"""The bins before this one are within the tolerance."""

LARGEST = 1e9
"""What a ratio is cut to: where nothing is allowed, it has no bound."""

NOT_FINITE = -1.0
"""A cell with an element that is not finite in both, nor the same infinity."""


def block(index: int, blocks: int, length: int) -> tuple[int, int]:
    """Return the first and the last index of a block: of rows, or of columns."""
    first = -(-index * length // blocks)
    return first, -(-(index + 1) * length // blocks) - 1


def error_map(
    actual: Any,
    expected: Any,
    tolerance: Tolerance,
    place: tuple[torch.Tensor, tuple[int, ...]] | None = None,
) -> dict[str, Any] | None:
    """Return histogram and grid as plain values; None where there is no error to map.

    The grid's columns are those of the last axis, its rows all other axes in one; a
    cell holds the largest ratio, NOT_FINITE, or None where it has no element. `place`
    says where the elements of flat tensors lie: positions, int64 [elements], and the
    shape of it all. `actual` and `expected` are tensors of one shape, of any dtype.
    """
    import torch

    if not (isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor)):
        return None
    if actual.shape != expected.shape or not actual.numel():
        return None
    ratio = _ratio(actual, expected, tolerance).flatten()
    if place is None:
        positions = torch.arange(len(ratio), device=ratio.device)
        shape = tuple(actual.shape)
    else:
        positions, shape = place[0].to(ratio.device), place[1]
    columns = shape[-1] if shape else 1
    rows = max(math.prod(shape), 1) // columns
    high, wide = min(SIDE, rows), min(SIDE, columns)
    # `block` is the inverse of this
    cells = positions // columns * high // rows * wide
    cells += positions % columns * wide // columns
    empty = ratio.new_full((high * wide,), -math.inf)
    grid = empty.scatter_reduce(0, cells, ratio, "amax").tolist()
    return {
        "rows": rows,
        "columns": columns,
        "histogram": _histogram(ratio),
        "grid": [
            [_cell(value) for value in grid[start : start + wide]]
            for start in range(0, len(grid), wide)
        ],
    }


def _ratio(
    actual: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance
) -> torch.Tensor:
    """Return |a - e| / allowed in float64; infinity where it is not finite."""
    a = actual.detach().double()
    e = expected.detach().to(a.device).double()
    ratio = (a - e).abs() / tolerance.allowed(e)
    finite = a.isfinite() & e.isfinite()
    ratio = ratio.clamp(max=LARGEST).masked_fill(~finite, math.inf)
    # 0 / 0 where nothing is allowed and nothing is amiss; infinities that agree
    return ratio.masked_fill(a == e, 0.0)


def _histogram(ratio: torch.Tensor) -> list[int]:
    """Return how many elements there are in each bin."""
    exponent = ratio.clamp(10.0**-WITHIN, LARGEST).log10()
    bins = ((exponent * 2).ceil() + (WITHIN - 1)).clamp(0, BINS - 1)
    counts: list[int] = bins.long().bincount(minlength=BINS).tolist()
    return counts


def _cell(value: float) -> float | None:
    if value == -math.inf:
        return None
    if value == math.inf:
        return NOT_FINITE
    rounded = float(f"{value:.3g}")
    # what is beyond the tolerance stays beyond it
    return rounded if rounded > 1.0 or value <= 1.0 else 1.001
