"""Workloads of hyper-connections: a batch of tokens."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure


def tokens(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the tokens of a captured batch; the captured axis is a gemm's M."""
    return Structure({"num_tokens": captured.axes["M"]})
