"""Workloads of state updates: the slots of a pool."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure, distinct


def slots(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the structure of a decode step; the captured axis is a norm's rows."""
    return pool_structure(captured.axes["batch_size"], rng)


def states_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the updated states, held all at once in float32, fit in memory."""
    one = 4 * spec.const("nheads") * spec.const("head_dim") * spec.const("dstate")
    return captured.axes["batch_size"] * one <= MEMORY_LIMIT


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
