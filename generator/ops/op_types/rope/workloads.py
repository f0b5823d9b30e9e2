"""Workloads of rotary embeddings: the positions of a batch."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure, fits_a_blob, split

# Query and key heads of MiniMax-M2 for tensor parallelism 1, 2, 4 and 8.
ROPE_HEADS = ((48, 8), (24, 4), (12, 2), (6, 1))
# Its longest context: the rows of its cosine and sine cache.
ROPE_POSITIONS = 196_608
# Tokens that one sequence has at most in a made-up batch: few, so that it has several.
LONGEST_CHUNK = 512


def positions(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the structure of a batch of tokens; the captured axis is a gemm's M."""
    return rope_structure(captured.axes["M"], rng)


def positions_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the int64 positions fit in a blob."""
    return fits_a_blob(8 * captured.axes["M"])


def rope_structure(num_tokens: int, rng: random.Random) -> Structure:
    """Return the positions of a batch: chunks of sequences, each after its prefix."""
    fewest = -(-num_tokens // LONGEST_CHUNK)
    chunks = split(num_tokens, rng.randint(fewest, num_tokens), 1, rng)
    positions: list[int] = []
    for length in chunks:
        first = rng.choice((0, rng.randrange(ROPE_POSITIONS - length)))
        positions += range(first, first + length)
    num_qo_heads, num_kv_heads = rng.choice(ROPE_HEADS)
    axes = {
        "num_tokens": num_tokens,
        "num_qo_heads": num_qo_heads,
        "num_kv_heads": num_kv_heads,
        "max_seq_len": ROPE_POSITIONS,
    }
    return Structure(axes, {"positions": positions})
