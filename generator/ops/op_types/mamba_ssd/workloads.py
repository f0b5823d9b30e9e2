"""Workloads of Mamba prefills: where sequences end."""

from __future__ import annotations

import random
from itertools import accumulate

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import (
    MEMORY_LIMIT,
    Structure,
    fits_a_blob,
    split,
)


def sequences(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the sequences and tokens of a captured prefill, ragged."""
    count, tokens = captured.axes["len_indptr"] - 1, captured.axes["total_q"]
    axes = {
        "total_tokens": tokens,
        "num_seqs": count,
        "len_cu_seqlens": count + 1,
    }
    ends = [0, *accumulate(split(tokens, count, 1, rng))]
    return Structure(axes, {"cu_seqlens": ends})


def states_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the ends fit a blob, and the float32 states in memory."""
    one = 4 * spec.const("nheads") * spec.const("head_dim") * spec.const("dstate")
    count = captured.axes["len_indptr"]
    return fits_a_blob(4 * count) and count * one <= MEMORY_LIMIT
