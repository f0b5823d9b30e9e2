"""Structural tensors of sparse attention: block tables, and lists of chosen tokens."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from generator.ops.attention.workloads import paged_structure
from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.choose import keys
from generator.ops.workloads.structure import Structure, distinct, fits_a_blob
from generator.ops.workloads.traffic import Step, batches, step

# Tokens that a made-up sequence has at most.
LONGEST = 16_384
PADDING = -1
# A query's list of chosen tokens takes 8 KiB.
CHOSEN_LIMIT = 32
# Tokens of the longest sequence that the indexer scores.
LONGEST_INDEXED = 65_536


def chosen(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the structure of sparse attention; the captured axis is a gemm's M."""
    page_size, topk = spec.const("page_size"), spec.const("topk")
    if not isinstance(captured, Step):
        return chosen_structure(captured.axes["M"], page_size, topk, rng)
    longest = [LONGEST_INDEXED] * captured.axes["M"]
    return chosen_structure(captured.axes["M"], page_size, topk, rng, longest)


def long_lists(spec: Spec) -> Iterator[CapturedWorkload]:
    """Yield queries that choose from contexts as long as the indexer scores."""
    yield from batches("M", 8)


def chosen_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the lists of chosen tokens stay small."""
    return captured.axes["M"] <= CHOSEN_LIMIT


def table(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the structure of the indexer."""
    page_size, topk = spec.const("page_size"), spec.const("topk")
    return table_structure(captured.axes, page_size, topk, rng)


def long_tables(spec: Spec) -> Iterator[CapturedWorkload]:
    """Yield batches whose sequences have far more tokens than the top-k takes."""
    yield step("one long context", [1], [LONGEST_INDEXED])
    yield step("four contexts", [1] * 4, [LONGEST_INDEXED // 4] * 4)


def table_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the block table fits in a blob."""
    # Every row has room for the longest sequence: 8 times the mean is rare.
    batch_size = captured.axes["batch_size"]
    room = 8 * keys(captured.axes) // batch_size // spec.const("page_size")
    return fits_a_blob(4 * batch_size * (room + 1))


def table_structure(
    captured: Mapping[str, int], page_size: int, topk: int, rng: random.Random
) -> Structure:
    """Return lengths and block tables of a batch for the axes of a captured workload.

    A row has room for the longest sequence and for `topk` tokens; behind a sequence's
    pages it is 0.
    """
    structure = paged_structure(captured, page_size, rng)
    pages, last = structure.tensors["kv_indices"], structure.tensors["kv_last_page_len"]
    starts = structure.tensors["kv_indptr"]
    rows = [pages[a:b] for a, b in pairwise(map(int, starts))]
    room = max(*map(len, rows), -(-topk // page_size))
    lens = [
        (len(row) - 1) * page_size + end for row, end in zip(rows, last, strict=True)
    ]
    table = [n for row in rows for n in [*row, *[0] * (room - len(row))]]
    axes = {
        "batch_size": len(rows),
        "max_num_pages": room,
        "num_pages": structure.axes["num_pages"],
    }
    return Structure(axes, {"seq_lens": lens, "block_table": table})


def chosen_structure(
    num_tokens: int,
    page_size: int,
    topk: int,
    rng: random.Random,
    lens: Sequence[int] = (),
) -> Structure:
    """Return each query's tokens, chosen at random of a sequence of its own.

    Sequences may be shorter than `topk`: then all their tokens are chosen, and -1 fills
    the row.
    """
    lens = lens or [
        rng.randint(1, rng.choice((topk, LONGEST))) for _ in range(num_tokens)
    ]
    counts = [-(-n // page_size) for n in lens]
    num_pages = sum(counts) + rng.randint(1, sum(counts))
    pages = distinct(sum(counts), num_pages, rng)
    indices: list[int] = []
    first = 0
    for length, count in zip(lens, counts, strict=True):
        table = pages[first : first + count]
        first += count
        chosen = distinct(min(length, topk), length, rng)
        indices += [table[t // page_size] * page_size + t % page_size for t in chosen]
        indices += [PADDING] * (topk - len(chosen))
    axes = {"num_tokens": num_tokens, "num_pages": num_pages}
    return Structure(axes, {"sparse_indices": indices})
