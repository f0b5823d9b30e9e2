"""Workloads of one sequence: as many tokens as captured batches have together."""

from __future__ import annotations

import random
from collections.abc import Iterator

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure
from generator.ops.workloads.traffic import CONTEXT, decode_steps, prefill_steps


def one_sequence(
    spec: Spec, captured: CapturedWorkload, rng: random.Random
) -> Structure:
    """Return a sequence as long as the captured batch; all tensors are random."""
    total = captured.axes
    return Structure({"q_len": total.get("total_q", 1), "kv_len": total["total_kv"]})


def traffic(spec: Spec) -> Iterator[CapturedWorkload]:
    """Yield a long context, of prefill the end of one."""
    if "q_len" in spec.axes:
        steps = prefill_steps(spec.name, spec.const("num_qo_heads"))
    else:
        steps = decode_steps(spec.name, CONTEXT)
    return (step for step in steps if len(step.kv_lens) == 1)


def one_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the float32 logits fit in memory."""
    queries = captured.axes.get("total_q", 1)
    logits = 4 * spec.const("num_qo_heads") * queries * captured.axes["total_kv"]
    return logits <= MEMORY_LIMIT
