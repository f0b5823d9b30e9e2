"""Structured tensors of a workload beside random ones, as a family declares them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

BLOB_LIMIT = 64 * 1024
"""Bytes of a blob, its header included."""
MEMORY_LIMIT = 1024**3
"""Bytes that a reference holds at a time beside inputs and outputs."""
_HEADER_ROOM = 512


@dataclass(frozen=True)
class Structure:
    """The axes of a workload, its tensors that are not drawn at random, scalars.

    A tensor of more than one axis is flat: the definition knows its shape. Axes and
    inputs that a definition lacks are left out of its workload.
    """

    axes: Mapping[str, int]
    tensors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    scalars: Mapping[str, float] = field(default_factory=dict)


def fits_a_blob(payload: int) -> bool:
    """Return whether `payload` bytes of tensors fit in a workload's blob."""
    return payload + _HEADER_ROOM <= BLOB_LIMIT


def split(total: int, parts: int, least: int, rng: random.Random) -> list[int]:
    """Split a total at random points into ragged parts of at least `least`."""
    free = total - parts * least
    if free < 0:
        raise ValueError(f"{total} is too small for {parts} parts of {least}")
    cuts = sorted(rng.randrange(free + 1) for _ in range(parts - 1))
    ends = zip([0, *cuts], [*cuts, free], strict=True)
    return [least + end - start for start, end in ends]


def ended_sequences(captured: Mapping[str, int], rng: random.Random) -> Structure:
    """Return the sequences of a captured prefill's axes, ragged, and where each ends."""
    count, tokens = captured["len_indptr"] - 1, captured["total_q"]
    axes = {"total_tokens": tokens, "num_seqs": count, "len_cu_seqlens": count + 1}
    ends = [0, *accumulate(split(tokens, count, 1, rng))]
    return Structure(axes, {"cu_seqlens": ends})


def distinct(count: int, limit: int, rng: random.Random) -> list[int]:
    """Draw distinct numbers below a limit, in random order.

    The first steps of a Fisher-Yates shuffle that remembers only what has moved.
    """
    moved: dict[int, int] = {}
    drawn = []
    for i in range(count):
        j = rng.randrange(i, limit)
        drawn.append(moved.get(j, j))
        moved[j] = moved.get(i, i)
    return drawn
