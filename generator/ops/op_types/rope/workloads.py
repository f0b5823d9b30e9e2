"""Workloads of rotary embeddings: the positions of a batch."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure, fits_a_blob, split
from generator.ops.workloads.traffic import CHUNK, Step, batches

# Tokens that one sequence has at most in a made-up batch: few, so that it has several.
LONGEST_CHUNK = 512
# Positions of definitions without a cache.
SHORT = 4096

HeadCounts = Sequence[tuple[int, int]]


def positions(
    spec: Spec,
    captured: CapturedWorkload,
    rng: random.Random,
    heads: HeadCounts,
    rows: int,
) -> Structure:
    """Return the structure of a batch of tokens; the captured axis is a gemm's M.

    `heads` are the query and key heads of one GPU to choose from, `rows` the positions
    of the cache.
    """
    structure = rope_structure(captured.axes["M"], rng, heads, rows)
    if not isinstance(captured, Step):
        return structure
    # the end of a context that is as long as the model's positions
    last = [*range(rows - captured.axes["M"], rows)]
    return Structure(structure.axes, {"positions": last})


def long_context(spec: Spec) -> Iterator[Step]:
    """Yield a part of a chunk of prefill: with 8 bytes a position no whole one fits."""
    yield from batches("M", CHUNK // 2)


def positions_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the int64 positions fit in a blob."""
    return fits_a_blob(8 * captured.axes["M"])


def three_positions(
    spec: Spec,
    captured: CapturedWorkload,
    rng: random.Random,
    heads: HeadCounts,
    rows: int,
) -> Structure:
    """Return the structure of a batch whose tokens have three positions each.

    Texts have the same one thrice, and images of some rows one in time.
    """
    structure = rope_structure(captured.axes["M"], rng, heads, rows)
    time = [int(position) for position in structure.tensors["positions"]]
    wide = rng.randrange(4, 33)
    images = [rng.random() < 0.5 for _ in time[::LONGEST_CHUNK]]
    down, across = list(time), list(time)
    for i, position in enumerate(time):
        if images[i // LONGEST_CHUNK]:
            place = i % LONGEST_CHUNK
            time[i] = position - min(place, position)
            down[i], across[i] = time[i] + place // wide, time[i] + place % wide
    flat = [min(position, rows - 1) for position in (*time, *down, *across)]
    return Structure(structure.axes, {"positions": flat})


def three_positions_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the int64 positions on three axes fit in a blob."""
    return fits_a_blob(3 * 8 * captured.axes["M"])


def short_positions(
    spec: Spec, captured: CapturedWorkload, rng: random.Random
) -> Structure:
    """Return positions whose angles kernels resolve in float32."""
    structure = rope_structure(captured.axes["M"], rng, ((1, 1),), SHORT)
    return Structure(structure.axes, {"pos_ids": structure.tensors["positions"]})


def rope_structure(
    num_tokens: int, rng: random.Random, heads: HeadCounts, rows: int
) -> Structure:
    """Return the positions of a batch: chunks of sequences, each after its prefix."""
    fewest = -(-num_tokens // LONGEST_CHUNK)
    chunks = split(num_tokens, rng.randint(fewest, num_tokens), 1, rng)
    positions: list[int] = []
    for length in chunks:
        first = rng.choice((0, rng.randrange(rows - length)))
        positions += range(first, first + length)
    num_qo_heads, num_kv_heads = rng.choice(heads)
    axes = {
        "num_tokens": num_tokens,
        "num_qo_heads": num_qo_heads,
        "num_kv_heads": num_kv_heads,
        "max_seq_len": rows,
    }
    return Structure(axes, {"positions": positions})
