"""Stage of a definition of the gated delta net: decode, verify or prefill."""

from __future__ import annotations

import math
from typing import Any

from kernel_judge.definition import Definition


def stage_of(definition: Definition) -> str:
    """Return `prefill`, `mtp` or `decode`, by the inputs."""
    names = definition.interface.inputs
    if "cu_seqlens" in names:
        return "prefill"
    return "mtp" if "initial_state_indices" in names else "decode"


def is_normalised(definition: Definition) -> bool:
    """Return whether queries and keys are made unit length first, by the name."""
    return "l2norm" in definition.constants


def scale_of(definition: Definition, inputs: dict[str, Any]) -> float:
    """Return the factor of the output; None and 0 mean 1 / sqrt(head_size)."""
    scale: float | None = inputs["scale"]
    return scale or 1.0 / math.sqrt(definition.axes["head_size"])
