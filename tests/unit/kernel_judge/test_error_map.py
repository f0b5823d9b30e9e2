"""Where the error sits: what a histogram and a grid of it say, and how large they get."""

from __future__ import annotations

import json
import math

import pytest
import torch

from generator.review.figures import upper_edge
from kernel_judge.comparison.error_map import (
    BINS,
    LARGEST,
    NOT_FINITE,
    SIDE,
    WITHIN,
    block,
    error_map,
)
from kernel_judge.comparison.tolerance import EXACT, Tolerance

ONE = Tolerance(rtol=0.0, atol=1.0)


def of_ratios(*ratios: float) -> dict:
    """Return the map of elements whose error is so many times what is allowed."""
    expected = torch.zeros(len(ratios), dtype=torch.float64)
    found = error_map(torch.tensor(ratios, dtype=torch.float64), expected, ONE)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("ratio", "bin_index"),
    [
        (0.0, 0),
        (1e-300, 0),
        (1e-4, 0),
        (1.01e-4, 1),
        (0.99, WITHIN - 1),
        (1.0, WITHIN - 1),
        (1.0001, WITHIN),
        (999.0, BINS - 2),
        (1001.0, BINS - 1),
        (1e300, BINS - 1),
        (math.nan, BINS - 1),
        (math.inf, BINS - 1),
    ],
)
def test_the_bin_of_an_error(ratio: float, bin_index: int) -> None:
    histogram = of_ratios(ratio)["histogram"]
    assert histogram == [int(i == bin_index) for i in range(BINS)]


def test_the_edges_are_those_of_the_bins() -> None:
    assert upper_edge(0) == pytest.approx(1e-4)
    assert upper_edge(WITHIN - 1) == 1.0
    assert upper_edge(BINS - 1) == math.inf
    for index in range(1, BINS - 1):
        between = math.sqrt(upper_edge(index - 1) * upper_edge(index))
        assert of_ratios(between)["histogram"][index] == 1


@pytest.mark.parametrize(
    ("shape", "side"),
    [((3, 5), (3, 5)), ((100, 7), (16, 7)), ((2, 3, 40), (6, 16)), ((), (1, 1))],
)
def test_a_grid_is_bounded_and_finds_each_element(shape, side) -> None:
    expected = torch.zeros(shape, dtype=torch.float64)
    count = expected.numel()
    for position in {0, count // 2, count - 1}:
        actual = expected.clone()
        actual.view(-1)[position] = 7.0
        found = error_map(actual, expected, ONE)
        assert (len(found["grid"]), len(found["grid"][0])) == side
        rows, columns = found["rows"], found["columns"]
        ((i, j),) = [
            (i, j)
            for i, row in enumerate(found["grid"])
            for j, cell in enumerate(row)
            if cell
        ]
        first, last = block(i, side[0], rows)
        assert first <= position // columns <= last
        first, last = block(j, side[1], columns)
        assert first <= position % columns <= last
        assert found["grid"][i][j] == 7.0


def test_blocks_are_all_of_an_axis_once() -> None:
    for length in (1, 5, 16, 17, 100, 5120):
        blocks = min(SIDE, length)
        spans = [block(i, blocks, length) for i in range(blocks)]
        listed = [i for first, last in spans for i in range(first, last + 1)]
        assert listed == list(range(length))


def test_what_is_not_finite_is_a_mark_and_infinities_may_agree() -> None:
    inf, nan = math.inf, math.nan
    actual = torch.tensor([[inf, nan, -inf, 1.0]])
    expected = torch.tensor([[inf, nan, inf, inf]])
    found = error_map(actual, expected, ONE)
    assert found["grid"] == [[0.0, NOT_FINITE, NOT_FINITE, NOT_FINITE]]
    assert sum(found["histogram"]) == 4
    json.dumps(found, allow_nan=False)


def test_what_is_just_beyond_is_not_rounded_to_the_bound() -> None:
    assert of_ratios(1.0, 1.0004, 0.9996)["grid"] == [[1.0, 1.001, 1.0]]


def test_where_nothing_is_allowed_the_ratio_is_cut() -> None:
    actual, expected = torch.tensor([1, 2]), torch.tensor([1, 3])
    assert error_map(actual, expected, EXACT)["grid"] == [[0.0, LARGEST]]


def test_elements_with_places_leave_the_other_cells_empty() -> None:
    place = (torch.tensor([0, 5]), (2, 3))
    found = error_map(torch.tensor([0.5, 9.0]), torch.zeros(2), ONE, place)
    assert found["grid"] == [[0.5, None, None], [None, None, 9.0]]


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (1.0, torch.zeros(1)),
        (torch.zeros(1), None),
        (torch.zeros(2), torch.zeros(3)),
        (torch.zeros(0, 3), torch.zeros(0, 3)),
    ],
)
def test_where_there_is_nothing_to_map(actual, expected) -> None:
    assert error_map(actual, expected, ONE) is None


def test_a_large_output_takes_no_more_room() -> None:
    found = error_map(torch.rand(4096, 128), torch.rand(4096, 128), ONE)
    assert len(json.dumps(found)) < 3000
