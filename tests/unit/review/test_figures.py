"""The shapes of a histogram and a heat map, and what is said of them."""

from __future__ import annotations

import pytest

from generator.results.run_results import ErrorMap, read_error_map
from generator.review.figures import (
    cells,
    level,
    of_grid,
    of_histogram,
    ratio,
    share,
    worst_cell,
)
from kernel_judge.comparison.error_map import BINS, NOT_FINITE


def made(grid: list[list[float | None]], **bins: int) -> ErrorMap:
    counts = [bins.get(f"b{n}", 0) for n in range(BINS)]
    value = {"rows": len(grid), "columns": len(grid[0]), "grid": grid}
    return read_error_map({**value, "histogram": counts})


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0.0, "h0"),
        (0.01, "h0"),
        (1.0, "h3"),
        (1.001, "h4"),
        (1e9, "h6"),
        (None, "empty"),
        (NOT_FINITE, "lost"),
    ],
)
def test_the_colour_of_a_cell(value: float | None, name: str) -> None:
    assert level(value) == name


def test_the_words() -> None:
    drawn = made([[0.0, 0.5], [None, 45.0]], b8=2, b12=1)
    assert of_grid(drawn) == "Worst: 45x in row 1, column 1."
    assert of_histogram(drawn) == "1 of 3 elements (33.3 %) are beyond the tolerance."
    assert worst_cell(drawn) == (1, 1)
    nothing = made([[0.0]], b0=1)
    assert (of_grid(nothing), worst_cell(nothing)) == ("There is no error.", None)
    assert of_histogram(nothing) == "All of 1 element are within the tolerance."
    lost = made([[NOT_FINITE, 5.0]], b15=2)
    assert of_grid(lost) == "Worst: not finite in row 0, column 0."


def test_one_element_of_a_million_can_be_seen() -> None:
    grid: list[list[float | None]] = [[1.0] * 16] * 16
    value = {"rows": 4000, "columns": 4000, "grid": grid}
    histogram = [0] * BINS
    histogram[8], histogram[9] = 15_999_999, 1
    drawn = read_error_map({**value, "histogram": histogram})
    assert share(1, drawn) * 96 >= 2.0
    assert share(15_999_999, drawn) == 1.0


def test_every_cell_is_drawn_once() -> None:
    drawn = made([[0.0, 1.0, 2.0], [None, NOT_FINITE, 2.0]])
    assert sorted(place for _, places in cells(drawn) for place in places) == [
        (i, j) for i in range(2) for j in range(3)
    ]
    assert [name for name, _ in cells(drawn)] == ["empty", "h0", "h3", "h4", "lost"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.972, "0.972x"),
        (144.4, "144.4x"),
        (1.001, "1.001x"),
        (7.2e5, "7.2e+05x"),
        (1e9, "beyond any bound"),
        (float("inf"), "not finite"),
    ],
)
def test_a_ratio_in_words(value: float, text: str) -> None:
    assert ratio(value) == text
