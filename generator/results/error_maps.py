"""Read where the error of an output sits out of a test's record; it may be hostile."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.testing.error_map import LARGEST, NOT_FINITE, SIDE


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


def read_error_map(value: Mapping[str, Any]) -> ErrorMap:
    """Return the map of a record that has the schema's form.

    Raises ValueError where its parts don't fit each other.
    """
    rows, columns, grid = value["rows"], value["columns"], value["grid"]
    if max(value["histogram"]) > rows * columns:
        raise ValueError("the histogram of a comparison counts more than its elements")
    high, wide = min(SIDE, rows), min(SIDE, columns)
    if len(grid) != high or any(len(row) != wide for row in grid):
        raise ValueError(f"the grid of a comparison is not {high} x {wide} ratios")
    cells = (v for row in grid for v in row if v is not None)
    # comparisons with NaN are False
    if not all(v == NOT_FINITE or 0 <= v <= LARGEST for v in cells):
        raise ValueError("the grid of a comparison has a cell that is not a ratio")
    return ErrorMap(rows, columns, tuple(value["histogram"]), tuple(map(tuple, grid)))
