"""Read where the error of an output sits out of a test's record; it may be hostile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from generator.testing.error_map import BINS, LARGEST, NOT_FINITE, SIDE

_MOST = 2**48


@dataclass(frozen=True)
class ErrorMap:
    """Hold a histogram and a grid of |error| / allowed, as `testing.error_map` makes.

    A cell of the grid is the largest ratio of its elements, NOT_FINITE, or None where
    it has none.
    """

    rows: int
    columns: int
    histogram: tuple[int, ...]
    grid: tuple[tuple[float | None, ...], ...]

    @property
    def worst(self) -> float | None:
        """Return the largest ratio: infinite where an element is not finite."""
        cells = [v for row in self.grid for v in row if v is not None]
        return max((math.inf if v == NOT_FINITE else v for v in cells), default=None)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return {
            "rows": self.rows,
            "columns": self.columns,
            "histogram": list(self.histogram),
            "grid": [list(row) for row in self.grid],
        }


def read_error_map(value: Any) -> ErrorMap:
    """Return a record's map; ValueError or TypeError if it is none, or not bounded."""
    if not isinstance(value, dict):
        raise TypeError("where of a comparison is no object")
    rows, columns = value.get("rows"), value.get("columns")
    if not (_is_count(rows) and _is_count(columns) and rows and columns):
        raise ValueError("where of a comparison has no rows and columns")
    histogram, grid = value.get("histogram"), value.get("grid")
    if not (
        isinstance(histogram, list)
        and len(histogram) == BINS
        and all(_is_count(n) and n <= rows * columns for n in histogram)
    ):
        raise ValueError(f"the histogram of a comparison is not {BINS} counts")
    high, wide = min(SIDE, rows), min(SIDE, columns)
    if not (
        isinstance(grid, list)
        and len(grid) == high
        and all(isinstance(row, list) and len(row) == wide for row in grid)
        and all(_is_cell(cell) for row in grid for cell in row)
    ):
        raise ValueError(f"the grid of a comparison is not {high} x {wide} ratios")
    cells = tuple(tuple(None if v is None else float(v) for v in row) for row in grid)
    return ErrorMap(rows, columns, tuple(histogram), cells)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _is_cell(value: Any) -> bool:
    if value is None:
        return True
    # comparisons with NaN are False; an int may be too large to be a float
    return type(value) in (int, float) and (
        value == NOT_FINITE or 0 <= value <= LARGEST
    )
