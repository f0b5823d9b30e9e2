"""Workloads of speculative sampling: the drafts of a batch."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure

_DRAFTS = (1, 2, 3, 4)


def drafted(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the drafts of each sequence; the captured axis is a norm's rows."""
    batch, drafts = captured.axes["batch_size"], rng.choice(_DRAFTS)
    size = spec.const("vocab_size")
    tokens = [rng.randrange(size) for _ in range(batch * drafts)]
    axes = {
        "batch_size": batch,
        "num_speculative": drafts,
        "num_speculative_plus_1": drafts + 1,
    }
    return Structure(axes, {"draft_token_ids": tokens})


def chains_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a float32 row of each sequence fits in memory four times over."""
    size = 4 * captured.axes["batch_size"] * spec.const("vocab_size")
    return 4 * size <= MEMORY_LIMIT
