"""Workloads of Mamba prefills: where sequences end."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import (
    MEMORY_LIMIT,
    Structure,
    ended_sequences,
    fits_a_blob,
)


def sequences(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the sequences and tokens of a captured prefill, ragged."""
    return ended_sequences(captured.axes, rng)


def states_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the ends fit a blob, and the float32 states in memory."""
    one = 4 * spec.const("nheads") * spec.const("head_dim") * spec.const("dstate")
    count = captured.axes["len_indptr"]
    return fits_a_blob(4 * count) and count * one <= MEMORY_LIMIT
