"""A comparison's figures, histogram and heat map in words and numbers for a template."""

from __future__ import annotations

import math

from generator.problems.messages import plural
from generator.results.run_results import ErrorMap
from kernel_judge.comparison.error_map import (
    BINS,
    NOT_FINITE,
    WITHIN,
    block,
)

LEVELS = (0.01, 0.1, 0.5, 1.0, 10.0, 100.0, math.inf)
"""Up to which ratio each colour of the heat map reaches; up to 1 is allowed."""


def level(value: float | None) -> str:
    """Return the name of a cell's colour: `h0` to `h6`, `lost`, or `empty`."""
    if value is None:
        return "empty"
    if value == NOT_FINITE:
        return "lost"
    return f"h{next(n for n, upper in enumerate(LEVELS) if value <= upper)}"


def cells(error_map: ErrorMap) -> list[tuple[str, list[tuple[int, int]]]]:
    """Return the colours of a heat map, and row and column of their cells."""
    places: dict[str, list[tuple[int, int]]] = {}
    for i, row in enumerate(error_map.grid):
        for j, value in enumerate(row):
            places.setdefault(level(value), []).append((i, j))
    return sorted(places.items())


def worst_cell(error_map: ErrorMap) -> tuple[int, int] | None:
    """Return row and column of the first of the worst cells; None without an error."""
    ratios = {place: value for place, value in error_map.ratios.items() if value}
    return max(ratios, key=ratios.__getitem__, default=None)


def share(count: int, error_map: ErrorMap) -> float:
    """Return how high a bar of the histogram is, of 1.

    Heights are logarithmic, and at least 1/48: one element of a million is to be seen.
    """
    return max(math.log1p(count) / math.log1p(max(error_map.histogram)), 1 / 48)


def upper_edge(index: int) -> float:
    """Return the ratio up to which a bin reaches; the last one has no end."""
    return math.inf if index == BINS - 1 else 10.0 ** ((index - WITHIN + 1) / 2)


def span(index: int) -> str:
    """Return which errors a bar of the histogram counts."""
    if index == 0:
        return f"up to {upper_edge(0):.0e} of what is allowed"
    low = f"{upper_edge(index - 1):.2g}"
    if index == BINS - 1:
        return f"above {low} times what is allowed, or not finite"
    return f"{low} to {upper_edge(index):.2g} times what is allowed"


def of_histogram(error_map: ErrorMap) -> str:
    """Return how many elements are beyond the tolerance."""
    beyond, total = sum(error_map.histogram[WITHIN:]), sum(error_map.histogram)
    elements = plural(total, "element")
    if not beyond:
        return f"All of {elements} are within the tolerance."
    percent = 100.0 * beyond / total
    return f"{beyond} of {elements} ({percent:.3g} %) are beyond the tolerance."


def of_grid(error_map: ErrorMap) -> str:
    """Return how large the worst error is, and where it is."""
    worst = worst_cell(error_map)
    if worst is None:
        return "There is no error."
    labels = []
    for noun, place, cells, size in (
        ("row", worst[0], len(error_map.grid), error_map.rows),
        ("column", worst[1], len(error_map.grid[0]), error_map.columns),
    ):
        first, last = block(place, cells, size)
        labels.append(
            f"{noun} {first}" if first == last else f"{noun}s {first} to {last}"
        )
    return f"Worst: {ratio(error_map.ratios[worst])} in {', '.join(labels)}."


def ratio(value: float | None) -> str:
    """Return how many times of what is allowed: `0.32x`, `not finite`."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return "not finite"
    if value >= 1e9:
        return "beyond any bound"
    # 1.001 is beyond what is allowed, and must not look like 1
    return f"{value:.4g}x" if value < 1000 else f"{value:.1e}x"


def within(value: float | None) -> str:
    """Return the share of elements within the tolerance, rounded down: `87.5 %`."""
    if value is None:
        return ""
    if not 0.0 <= value <= 1.0:
        return "none"
    return f"{math.floor(value * 1000) / 10:.1f}".removesuffix(".0") + " %"


def sortable(value: float | None) -> str:
    """Return a number that JavaScript reads; it has no word for NaN that sorts."""
    if value is None:
        return ""
    return f"{value:.6g}" if math.isfinite(value) else "1e308"
