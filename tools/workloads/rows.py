"""Structural tensors of ops on single tokens: positions, slots, sampling settings."""

from __future__ import annotations

import random

from tools.workloads.structure import Structure, distinct, split

# Query and key heads of MiniMax-M2 for tensor parallelism 1, 2, 4 and 8.
ROPE_HEADS = ((48, 8), (24, 4), (12, 2), (6, 1))
# Its longest context: the rows of its cosine and sine cache.
ROPE_POSITIONS = 196_608
# Settings that requests come with; k = 1 and a small p are greedy or nearly so.
TOP_KS = (1, 10, 20, 40, 50, 64, 100, 200)
TOP_PS = (0.1, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
# Tokens that one sequence has at most in a made-up batch: few, so that it has several.
LONGEST_CHUNK = 512


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


def pool_structure(batch_size: int, rng: random.Random) -> Structure:
    """Return distinct slots of a pool that is larger than the batch.

    Half of the batches are padded: as in a CUDA graph, up to a quarter of the rows, the
    last ones, have slot -1.
    """
    pool = batch_size + rng.randint(1, batch_size + 8)
    padding = rng.choice((0, rng.randint(0, batch_size // 4)))
    slots = distinct(batch_size - padding, pool, rng)
    axes = {"batch_size": batch_size, "state_cache_size": pool}
    return Structure(axes, {"state_batch_indices": slots + [-1] * padding})


def sampling_structure(batch_size: int, rng: random.Random) -> Structure:
    """Return each row's k and p: most rows have the service's default, some others."""
    usual_k, usual_p = rng.choice(TOP_KS), rng.choice(TOP_PS)
    own = [rng.random() < 0.25 for _ in range(batch_size)]
    tensors: dict[str, list[float]] = {
        "top_k": [rng.choice(TOP_KS) if differs else usual_k for differs in own],
        "top_p": [rng.choice(TOP_PS) if differs else usual_p for differs in own],
    }
    return Structure({"batch_size": batch_size}, tensors)
