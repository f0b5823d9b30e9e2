"""Audit sizes of images, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation, varied_rows
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return images of 4 by 4 patches, with pixels left over."""
    patch = min(axes["patch_size"], 7)
    image = 4 * patch + min(2, patch - 1)
    sizes = {"image_size": image, "patch_size": patch, "num_patches": 16}
    return {**sizes, "hidden_size": 24, "channels": 3}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other images."""
    return varied_rows(definition, case, draw, other)
