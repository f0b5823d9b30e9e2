"""The stored positions see a fault in any part of an output, wherever it is planted."""

from __future__ import annotations

import math

import pytest
import torch

from kernel_judge.recording import positions
from kernel_judge.recording.positions import (
    STORED_BYTES,
    TAIL,
    digest,
    stored_positions,
)

# outputs as they are: [rows, heads, dim], LSE, [rows, columns], a pool of states
SHAPES = {
    "attention": ((231, 32, 128), 2),
    "attention, 64 heads": ((231, 64, 128), 2),
    "decode": ((11, 32, 128), 2),
    "latent": ((114, 16, 512), 2),
    "lse": ((231, 32), 4),
    "product": ((7, 57344), 2),
    "one row": ((1, 57344), 2),
    "states": ((6, 128, 64, 128), 2),
    "states in float32": ((4, 32, 128, 128), 4),
    "experts": ((33, 7168), 2),
    "long": ((20_000, 8, 16), 2),
}


def kept(name):
    shape, itemsize = SHAPES[name]
    found = stored_positions(shape, itemsize, "definition", "case", "output")
    assert found is not None
    mask = torch.zeros(math.prod(shape), dtype=torch.bool)
    mask[found] = True
    return mask.reshape(shape)


def test_small_outputs_are_kept_whole():
    assert stored_positions((32, 128), 2, "d") is None
    assert stored_positions((32, 129), 2, "d") is not None
    assert stored_positions((0, 128), 2, "d") is None
    assert stored_positions((), 4, "d") is None


@pytest.mark.parametrize("name", SHAPES)
def test_they_are_few_sorted_and_the_same_every_time(name):
    shape, itemsize = SHAPES[name]
    found = stored_positions(shape, itemsize, "definition", "case", "output")
    count = STORED_BYTES // itemsize
    assert found.dtype == torch.int64
    assert bool((found.diff() > 0).all())
    assert 0 <= int(found[0]) < int(found[-1]) < math.prod(shape)
    assert 0.7 * count < len(found) <= count + len(shape) * TAIL
    again = stored_positions(shape, itemsize, "definition", "case", "output")
    other = stored_positions(shape, itemsize, "definition", "case", "other")
    assert digest(found) == digest(again) != digest(other)


def test_the_positions_are_those_of_the_first_release():
    # other ones would make every recording that there is worthless
    assert (
        digest(stored_positions((231, 32, 128), 2, "d", "c", "o")) == "bf77f4a370b5beb8"
    )
    assert (
        digest(stored_positions((6, 128, 64, 128), 4, "d", "c", "o"))
        == "090fc6dc8d21c438"
    )


@pytest.mark.parametrize("name", [n for n in SHAPES if n != "long"])
def test_every_index_of_every_leading_axis_is_seen(name):
    mask = kept(name)
    for axis in range(mask.dim() - 1):
        others = [a for a in range(mask.dim()) if a != axis]
        assert bool(mask.sum(dim=others).gt(0).all()), f"axis {axis}"


@pytest.mark.parametrize("name", ["decode", "states", "states in float32"])
def test_every_head_of_every_row_is_seen(name):
    mask = kept(name)
    assert bool(mask.flatten(2).any(dim=2).all())


@pytest.mark.parametrize("name", SHAPES)
def test_a_block_of_columns_is_seen_wherever_it_is(name):
    mask = kept(name)
    columns = mask.flatten(0, -2).any(dim=0)
    if mask.shape[-1] <= 512:
        assert bool(columns.all())
    # an expert's, a tile's: 64 columns, and the tail of a last tile
    width = min(64, mask.shape[-1])
    assert all(bool(block.any()) for block in columns.unfold(0, width, 1))
    assert bool(columns[-16:].any())


@pytest.mark.parametrize("name", ["product", "experts"])
def test_a_block_of_columns_of_one_row_is_seen(name):
    for row in kept(name):
        blocks = row.unfold(0, 128, 128)
        assert bool(blocks.any(dim=1).all())


def test_one_head_of_one_sequence_is_seen():
    # a page of one key head: the rows of one sequence, 4 query heads that read it
    mask = kept("attention")
    start = 0
    for length in (1, 5, 31, 32, 33, 64, 65):
        rows = mask[start : start + length]
        start += length
        for head in range(0, 32, 4):
            seen = int(rows[:, head : head + 4].sum())
            assert seen > 0, (length, head)


def test_the_last_index_of_each_axis_gets_more():
    mask = kept("long")
    for axis in range(3):
        assert int(mask.select(axis, mask.shape[axis] - 1).sum()) >= TAIL - 2


def test_more_rows_than_elements_are_seen_in_blocks():
    rows = kept("long").flatten(1).any(dim=1)
    assert all(bool(block.any()) for block in rows.unfold(0, 16, 16))


def test_elements_are_drawn_by_integers_alone(monkeypatch):
    def refuse(*_):
        raise AssertionError("not the same on every machine")

    for name in ("rand", "randn", "randint", "randperm"):
        monkeypatch.setattr(torch, name, refuse)
    assert positions.stored_positions.__wrapped__((99, 999), 4, "d") is not None
