"""Audit sizes of images, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation, varied_rows
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return images of 4 by 4 patches, with pixels left over."""
    sizes = {"image_size": 30, "patch_size": 7, "num_patches": 16, "hidden_size": 24}
    return {**sizes, "channels": 3}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other images."""
    return varied_rows(definition, case, draw, other)
