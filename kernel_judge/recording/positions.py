"""Sampled positions of a large output in a recording: few, spread over every part.

The leading axes whose indices fit into the count, such as (row, head), form cells, and
every cell gets equally many elements. Along each axis left, the elements of a cell lie
in strata of equal length, shifted from cell to cell so that together they reach every
place. At the end of each axis lie some more, for the tail of a block is where kernels
go wrong. All of it is integer arithmetic on a Stream: the same on every machine.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache

import torch

from kernel_judge.inputs.seeded_inputs import Stream

# a stored output takes no more than this, but for the tails
STORED_BYTES = 8 * 2**10
# elements at the last index of each axis, beside the others
TAIL = 16


@lru_cache(maxsize=64)
def stored_positions(
    shape: tuple[int, ...], itemsize: int, *key: str
) -> torch.Tensor | None:
    """Return the flat positions to keep of an output: int64, sorted, none twice.

    None stands for all. `itemsize` is that of the dtype in bytes; `key` names the
    output: its definition, its case and itself.
    """
    total = math.prod(shape)
    count = STORED_BYTES // itemsize
    if total <= count:
        return None
    stream = Stream("positions", *key)
    index = _spread(shape, count, stream)
    columns = [
        [c, *tails] for c, tails in zip(index, _tails(shape, stream), strict=True)
    ]
    flat = torch.zeros((), dtype=torch.int64)
    for length, parts in zip(shape, columns, strict=True):
        flat = flat * length + torch.cat(parts)
    ordered: torch.Tensor = torch.unique(flat, sorted=True)
    return ordered


def digest(positions: torch.Tensor) -> str:
    """Return what tells positions, int64 [elements], from others: 16 hex digits."""
    return hashlib.sha256(positions.numpy().tobytes()).hexdigest()[:16]


def _spread(
    shape: Sequence[int], count: int, stream: Stream
) -> tuple[torch.Tensor, ...]:
    """Return the index along each axis of `count` elements, or some fewer."""
    leading, cells = 0, 1
    while leading < len(shape) and cells * shape[leading] <= count:
        cells *= shape[leading]
        leading += 1
    each = count // cells
    numbers = torch.arange(cells).repeat_interleave(each)
    index: list[torch.Tensor] = []
    for length in reversed(shape[:leading]):
        index.insert(0, numbers % length)
        numbers = numbers // length
    for length in shape[leading:]:
        # the order of random numbers: for each cell, its strata shuffled
        ranks = stream.permutation(cells * each).reshape(cells, each)
        strata = ranks.argsort(dim=1)
        shift = stream.permutation(cells)[:, None]
        index.append(((strata * cells + shift) * length // (each * cells)).flatten())
    return tuple(index)


def _tails(shape: Sequence[int], stream: Stream) -> list[list[torch.Tensor]]:
    """Return more indices along each axis: some at the last index of each one."""
    tails: list[list[torch.Tensor]] = [[] for _ in shape]
    for tail in range(len(shape)):
        for axis, length in enumerate(shape):
            drawn = stream.integers(0, length, TAIL)
            last = [length - 1] * TAIL
            tails[axis].append(torch.tensor(last if axis == tail else drawn))
    return tails
