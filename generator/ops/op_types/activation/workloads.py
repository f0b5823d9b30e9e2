"""Workloads of gated activations: the token counts of captured gemms."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure


def tokens(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return as many rows as the captured gemm had; all tensors are random."""
    return Structure({"num_tokens": captured.axes["M"]})


def rows_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a float32 copy of the rows fits in memory."""
    return 4 * captured.axes["M"] * 2 * spec.const("intermediate_size") <= MEMORY_LIMIT
