"""Workloads of top-k transforms: lengths, page tables and offsets of a batch."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import BLOB_LIMIT, Structure, distinct
from generator.ops.workloads.traffic import CONTEXT, Step, batches

# tokens that a made-up sequence has at most
LONGEST = 16_384
_MOST_ROWS = 200
_SHORTEST = 64


def paged(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the rows of a decode step; the captured axis is a norm's rows."""
    lengths = _lengths(spec, captured, rng)
    page = page_size(spec)
    room = -(-max(lengths) // page)
    table = distinct(len(lengths) * room, 2 * len(lengths) * room, rng)
    axes = {
        "num_rows": len(lengths),
        "max_len": room * page,
        "batch_size": len(lengths),
        "max_pages_per_seq": room,
    }
    tensors = {
        "src_page_table": table,
        "lengths": lengths,
        "row_to_batch": list(range(len(lengths))),
    }
    return Structure(axes, tensors)


def ragged(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the rows of a prefill, each of a sequence of its own."""
    lengths = _lengths(spec, captured, rng)
    axes = {"num_rows": len(lengths), "max_len": max(lengths)}
    offsets = [0, *accumulate(lengths)][:-1]
    return Structure(axes, {"offsets": offsets, "lengths": lengths})


def rows_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a blob has room for rows of some length."""
    rows = captured.axes["batch_size"]
    return rows <= _MOST_ROWS and _room(spec, rows) >= _SHORTEST


def long_rows(spec: Spec) -> Iterator[Step]:
    """Yield rows of 65,536 scores, as many as a page table has room for."""
    yield from batches("batch_size", 2)


def _lengths(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> list[int]:
    rows = captured.axes["batch_size"]
    if isinstance(captured, Step):
        return [min(CONTEXT // 2, _room(spec, rows))] * rows
    longest = min(rng.choice((2048, 4096, LONGEST)), _room(spec, rows))
    return [rng.randint(1, longest) for _ in range(rows)]


def _room(spec: Spec, rows: int) -> int:
    """Return how many tokens of each row a blob's page table can hold."""
    if "src_page_table" not in spec.inputs:
        return CONTEXT
    entries = (BLOB_LIMIT - 1024) // 4 // rows - 2
    return entries * page_size(spec)


def page_size(spec: Spec) -> int:
    """Return the page size that a definition's name states."""
    return int(spec.name.rpartition("_ps")[2])
