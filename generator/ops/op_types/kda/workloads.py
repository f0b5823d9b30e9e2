"""Workloads of delta nets: batches whose states fit in memory, and ends of sequences."""

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


def batch_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the float32 states of a decode step fit in memory."""
    return captured.axes["batch_size"] * _state_bytes(spec) <= MEMORY_LIMIT


def sequences(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the sequences and tokens of a captured prefill, ragged."""
    return ended_sequences(captured.axes, rng)


def sequences_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the ends fit a blob, and the float32 states in memory."""
    count = captured.axes["len_indptr"]
    return fits_a_blob(4 * count) and count * _state_bytes(spec) <= MEMORY_LIMIT


def _state_bytes(spec: Spec) -> int:
    return 4 * spec.const("num_heads") * spec.const("head_dim") ** 2
