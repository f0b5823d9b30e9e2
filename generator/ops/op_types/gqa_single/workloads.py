"""Workloads of one sequence: one of a captured batch, whose lengths are made up."""

from __future__ import annotations

import random
from itertools import pairwise

from generator.ops.attention.workloads import ragged_structure
from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure


def one_sequence(
    spec: Spec, captured: CapturedWorkload, rng: random.Random
) -> Structure:
    """Return one sequence of the batch; all tensors are random."""
    starts = ragged_structure(captured.axes, rng).tensors
    pairs = zip(
        pairwise(starts["qo_indptr"]), pairwise(starts["kv_indptr"]), strict=True
    )
    lengths = [(q_end - q, max(end - start, 1)) for (q, q_end), (start, end) in pairs]
    q_len, kv_len = rng.choice(lengths)
    return Structure({"q_len": int(q_len), "kv_len": int(kv_len)})


def one_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether float32 logits of the whole batch would fit in memory."""
    queries = captured.axes["total_q"] if "q_len" in spec.axes else 1
    logits = 4 * spec.const("num_qo_heads") * queries * captured.axes["total_kv"]
    return logits <= MEMORY_LIMIT
