"""Workloads of convolutions: the slots of a pool, and where sequences end."""

from __future__ import annotations

import random
from itertools import accumulate

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import (
    MEMORY_LIMIT,
    Structure,
    distinct,
    fits_a_blob,
    split,
)


def slots(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the structure of a step or of a prefill.

    The captured axes are the rows of a norm, or the sequences and tokens of a prefill.
    Half of the steps are padded, half of a prefill's sequences go on.
    """
    prefill = "cu_seqlens" in spec.inputs
    count = captured.axes["len_indptr"] - 1 if prefill else captured.axes["batch_size"]
    pool = count + rng.randint(1, count + 8)
    if not prefill:
        padding = rng.choice((0, rng.randint(0, count // 4)))
        indices = distinct(count - padding, pool, rng) + [-1] * padding
        axes = {"batch_size": count, "num_slots": pool}
        return Structure(axes, {"cache_indices": indices})
    tokens = captured.axes["total_q"]
    axes = {
        "total_tokens": tokens,
        "num_seqs": count,
        "len_cu_seqlens": count + 1,
        "num_slots": pool,
    }
    return Structure(
        axes,
        {
            "cu_seqlens": [0, *accumulate(split(tokens, count, 1, rng))],
            "cache_indices": distinct(count, pool, rng),
            "has_initial_state": [rng.randrange(2) for _ in range(count)],
        },
    )


def slots_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether numbers fit a blob, and float32 rows in memory."""
    axes = captured.axes
    rows = axes["total_q"] if "cu_seqlens" in spec.inputs else axes["batch_size"]
    sequences = axes.get("len_indptr", 1 + axes.get("batch_size", 0))
    work = 4 * spec.const("width") * spec.const("dim") * rows
    return fits_a_blob(9 * sequences) and work <= MEMORY_LIMIT
