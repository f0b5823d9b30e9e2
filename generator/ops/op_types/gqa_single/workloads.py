"""Workloads of one sequence: as many tokens as captured batches have together."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure


def one_sequence(
    spec: Spec, captured: CapturedWorkload, rng: random.Random
) -> Structure:
    """Return a sequence as long as the captured batch; all tensors are random."""
    total = captured.axes
    return Structure({"q_len": total.get("total_q", 1), "kv_len": total["total_kv"]})


def one_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the float32 logits fit in memory."""
    queries = captured.axes.get("total_q", 1)
    logits = 4 * spec.const("num_qo_heads") * queries * captured.axes["total_kv"]
    return logits <= MEMORY_LIMIT
