"""Workloads of one sequence: the mean lengths of the sequences of captured batches."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure


def one_sequence(
    spec: Spec, captured: CapturedWorkload, rng: random.Random
) -> Structure:
    """Return a sequence of the batch's mean length; all tensors are random."""
    return Structure(_lengths(captured))


def one_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether there is a key, and the float32 logits fit in memory."""
    lengths = _lengths(captured)
    queries = lengths["q_len"] if "q_len" in spec.axes else 1
    logits = 4 * spec.const("num_qo_heads") * queries * lengths["kv_len"]
    return lengths["kv_len"] > 0 and logits <= MEMORY_LIMIT


def _lengths(captured: CapturedWorkload) -> dict[str, int]:
    sequences = captured.axes["len_indptr"] - 1
    names = (("q_len", "total_q"), ("kv_len", "total_kv"))
    return {name: captured.axes[total] // sequences for name, total in names}
