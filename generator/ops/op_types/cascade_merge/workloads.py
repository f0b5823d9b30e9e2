"""Workloads of merging: the token counts of captured gemms, and few parts of the keys."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure

# parts into which a decode splits its keys, as a shared prefix and its branches do
_MOST_STATES = 16


def states(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return as many queries as the captured gemm had tokens; all tensors are random."""
    axes = {"seq_len": captured.axes["M"], "num_states": rng.randint(2, _MOST_STATES)}
    return Structure(axes)


def states_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a float32 copy of all parts fits in memory."""
    parts = _MOST_STATES if "num_states" in spec.axes else 2
    row = 4 * spec.const("num_heads") * spec.const("head_dim")
    return captured.axes["M"] * parts * row <= MEMORY_LIMIT
