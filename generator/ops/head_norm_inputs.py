"""Inputs of RMS norms of query and key heads that bfloat16 holds normalised.

Imports no torch: bounds name such a case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kernel_judge.definition import Case, Definition

if TYPE_CHECKING:
    import torch

UNROUNDED_NORM = "held-by-bfloat16"
"""The name of such a case."""
UNROUNDED: Mapping[str, Any] = {"magnitude": 27.0, "fifths": True}
"""Its parameters. 27^2 has more than 8 bits: a mean square in bfloat16 shows."""


def unrounded(
    definition: Definition, case: Case, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sizes of a head's elements, and weights like the ones drawn: float32 [size].

    Heads of one size are normalised to 1, and weights are multiples of 1/64. With
    `fifths`, where the norm adds 1 to the weight, sizes of 1 and 7 in turn, times the
    magnitude, have a root mean square of 5. Heads of a fifth meet weights of five times an
    odd number from 53 to 63 over 128 or 256: bfloat16 holds their product, and not 1 + weight.
    """
    drawn = (weight * 64.0).round()
    sizes = weight.new_full(weight.shape, case.params["magnitude"])
    if not (definition.constants["unit_offset"] and "fifths" in case.params):
        return sizes, drawn / 64.0
    odd = 53.0 + 2.0 * drawn.remainder(6.0)
    weight = 5.0 * odd / 2.0 ** (7.0 + drawn.remainder(2.0)) - 1.0
    # little of the power: the others show
    sizes[1::2] *= 7.0
    weight[1::2] = 5.0 / 256.0 - 1.0
    return sizes, weight
