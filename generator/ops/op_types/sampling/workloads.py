"""Workloads of samplers: the settings that requests come with."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure

# Settings that requests come with; k = 1 and a small p are greedy or nearly so.
TOP_KS = (1, 10, 20, 40, 50, 64, 100, 200)
MIN_PS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
TOP_PS = (0.1, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


def settings(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the structure of a batch; the captured axis is a norm's rows."""
    return sampling_structure(captured.axes["batch_size"], rng)


def probabilities_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a float32 copy of the probabilities fits in memory."""
    size = 4 * captured.axes["batch_size"] * spec.const("vocab_size")
    return size <= MEMORY_LIMIT


def sampling_structure(batch_size: int, rng: random.Random) -> Structure:
    """Return each row's k, p and share: most rows have the service's default, some others."""
    usual_k, usual_p = rng.choice(TOP_KS), rng.choice(TOP_PS)
    differing = [rng.random() < 0.25 for _ in range(batch_size)]
    tensors: dict[str, list[float]] = {
        "top_k": [rng.choice(TOP_KS) if differs else usual_k for differs in differing],
        "top_p": [rng.choice(TOP_PS) if differs else usual_p for differs in differing],
    }
    usual = rng.choice(MIN_PS)
    tensors["min_p"] = [
        rng.choice(MIN_PS) if differs else usual for differs in differing
    ]
    return Structure({"batch_size": batch_size}, tensors)
