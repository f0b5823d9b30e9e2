"""Workloads of matrix products: the rows of captured gemms."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure


def rows(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return as many rows as the captured gemm had, and the scales of tensors."""
    return Structure({"M": captured.axes["M"]}, scalars=spec.scalars)


def rows_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a float32 copy of the larger of input and output fits in memory."""
    batch = spec.const("batch_size") if "batch_size" in spec.axes else 1
    longest = max(spec.const("N"), spec.const("K"))
    return 4 * batch * captured.axes["M"] * longest <= MEMORY_LIMIT
