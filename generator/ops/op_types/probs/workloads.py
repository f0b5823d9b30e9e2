"""Workloads of whole rows: the settings that requests come with."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.op_types.sampling.workloads import (
    probabilities_fit,
    sampling_structure,
)
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure

TEMPERATURES = (0.2, 0.6, 0.7, 0.8, 1.0)

probs_fit = probabilities_fit


def row_settings(
    spec: Spec, captured: CapturedWorkload, rng: random.Random
) -> Structure:
    """Return a batch; most rows have the service's default settings, some their own."""
    structure = sampling_structure(captured.axes["batch_size"], rng)
    usual = rng.choice(TEMPERATURES)
    temperatures = [
        rng.choice(TEMPERATURES) if rng.random() < 0.25 else usual
        for _ in range(structure.axes["batch_size"])
    ]
    return Structure(structure.axes, {**structure.tensors, "temperature": temperatures})
