"""Choosing a few captured workloads that differ."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from generator.ops.workloads.captured import CapturedWorkload

COUNT = 8


def choose(lines: Sequence[CapturedWorkload], seed: str) -> list[CapturedWorkload]:
    """Return up to COUNT lines: smallest, largest, longest, and some of every kind.

    Lines are of one kind when their sizes share a power of two and both or neither
    have more queries than keys; one is drawn of each kind in turn. So many steps of
    one captured sweep can't crowd out the rest.
    """
    rng = random.Random(seed)
    by_size = sorted(lines, key=lambda line: _size(line.axes))
    longest = max(by_size, key=lambda line: keys(line.axes))
    chosen = {line.uuid: line for line in (by_size[0], by_size[-1], longest)}
    kinds: dict[tuple[int, bool], list[CapturedWorkload]] = {}
    for line in by_size:
        if line.uuid not in chosen:
            kinds.setdefault(_kind(line.axes), []).append(line)
    piles = list(kinds.values())
    rng.shuffle(piles)
    for pile in piles:
        rng.shuffle(pile)
    while any(piles):
        for pile in filter(None, piles):
            line = pile.pop()
            chosen[line.uuid] = line
    uuids = list(chosen)[:COUNT]
    return [line for line in lines if line.uuid in uuids]


def keys(axes: Mapping[str, int]) -> int:
    """Return the tokens of all key-value sequences, 0 where an op has none."""
    return axes.get("total_kv", axes.get("num_kv_indices", 0))


def _size(axes: Mapping[str, int]) -> int:
    if "len_indptr" in axes:
        return keys(axes) + axes.get("total_q", 0)
    (only,) = axes.values()
    return only


def _kind(axes: Mapping[str, int]) -> tuple[int, bool]:
    more_queries = axes.get("total_q", 0) > keys(axes)
    return _size(axes).bit_length(), more_queries
