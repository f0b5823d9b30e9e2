"""A comparison's histogram and heat map as shapes for a template: numbers and names."""

from __future__ import annotations

import math
from dataclasses import dataclass

from generator.error_maps import ErrorMap
from generator.support.error_map import BINS, NOT_FINITE, WITHIN, block, upper_edge
from generator.wording import plural

LEVELS = (0.01, 0.1, 0.5, 1.0, 10.0, 100.0, math.inf)
"""Up to which ratio each colour of the heat map reaches; up to 1 is allowed."""

LOST = "lost"
_CELL = 16
_BAR, _HIGH = 20, 96


@dataclass(frozen=True)
class Bar:
    """Hold one bar of the histogram: its place, what it counts, and in words."""

    x: int
    y: float
    height: float
    is_beyond: bool
    count: int
    title: str


@dataclass(frozen=True)
class Figures:
    """Hold what is drawn of one error map, and what is said of it.

    `levels` are (name, path) of the cells of one colour, in units of pixels.
    """

    bars: tuple[Bar, ...]
    levels: tuple[tuple[str, str], ...]
    width: int
    height: int
    mark: tuple[int, int, int, int] | None
    of_histogram: str
    of_grid: str


def figures(found: ErrorMap) -> Figures:
    """Return the shapes of an error map."""
    high, wide = len(found.grid), len(found.grid[0])
    tall = _CELL if high > 4 else 2 * _CELL
    paths: dict[str, list[str]] = {}
    for i, row in enumerate(found.grid):
        for j, value in enumerate(row):
            piece = f"M{j * _CELL} {i * tall}h{_CELL}v{tall}h-{_CELL}z"
            paths.setdefault(level(value), []).append(piece)
    worst = _worst(found)
    return Figures(
        tuple(_bars(found)),
        tuple((name, "".join(pieces)) for name, pieces in sorted(paths.items())),
        wide * _CELL,
        high * tall,
        (worst[1] * _CELL, worst[0] * tall, _CELL, tall) if worst else None,
        _say_histogram(found),
        _say_grid(found, worst),
    )


def level(value: float | None) -> str:
    """Return the name of a cell's colour: `h0` to `h6`, `lost`, or `empty`."""
    if value is None:
        return "empty"
    if value == NOT_FINITE:
        return LOST
    return f"h{next(n for n, upper in enumerate(LEVELS) if value <= upper)}"


def ratio(value: float) -> str:
    """Return how many times of what is allowed: `0.32x`, `not finite`."""
    if not math.isfinite(value):
        return "not finite"
    if value >= 1e9:
        return "beyond any bound"
    # 1.001 is beyond what is allowed, and must not look like 1
    text = f"{value:.4g}" if value < 1000 else f"{value:.1e}"
    return f"{text}x"


def _bars(found: ErrorMap) -> list[Bar]:
    most = max(found.histogram)
    bars = []
    for n, count in enumerate(found.histogram):
        # one element of a million is to be seen: heights are logarithmic
        share = math.log1p(count) / math.log1p(most) if count else 0.0
        height = round(max(share * _HIGH, 2.0), 1) if count else 0.0
        title = f"{_span(n)}: {plural(count, 'element')}"
        y = round(_HIGH - height, 1)
        bars.append(Bar(n * _BAR, y, height, n >= WITHIN, count, title))
    return bars


def _span(index: int) -> str:
    if index == 0:
        return f"up to {upper_edge(0):.0e} of what is allowed"
    low = f"{upper_edge(index - 1):.2g}"
    if index == BINS - 1:
        return f"above {low} times what is allowed, or not finite"
    return f"{low} to {upper_edge(index):.2g} times what is allowed"


def _worst(found: ErrorMap) -> tuple[int, int] | None:
    cells = [
        (math.inf if v == NOT_FINITE else v, -i, -j)
        for i, row in enumerate(found.grid)
        for j, v in enumerate(row)
        if v is not None
    ]
    value, i, j = max(cells, default=(0.0, 0, 0))
    return (-i, -j) if value > 0.0 else None


def _say_histogram(found: ErrorMap) -> str:
    beyond, total = sum(found.histogram[WITHIN:]), sum(found.histogram)
    share = 100.0 * beyond / max(total, 1)
    if not beyond:
        return f"All of {plural(total, 'element')} are within the tolerance."
    return f"{beyond} of {plural(total, 'element')} ({share:.3g} %) are beyond the tolerance."


def _say_grid(found: ErrorMap, worst: tuple[int, int] | None) -> str:
    if worst is None:
        return "There is no error."
    i, j = worst
    value = found.grid[i][j]
    said = "not finite" if value == NOT_FINITE else ratio(value or 0.0)
    rows = block(i, len(found.grid), found.rows)
    columns = block(j, len(found.grid[0]), found.columns)
    return f"Worst: {said} in {_range('row', rows)}, {_range('column', columns)}."


def _range(noun: str, span: tuple[int, int]) -> str:
    first, last = span
    return f"{noun} {first}" if first == last else f"{noun}s {first} to {last}"
