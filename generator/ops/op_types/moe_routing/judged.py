"""The case that only solutions are asked: a factor of all weights of many bits."""

from __future__ import annotations

import math

from generator.ops.far_factors import with_factors
from generator.ops.op_types.moe_routing.op import cases as declared
from kernel_judge.definition import Case, Definition

# halfway between two numbers of float16, and nearly so between two of bfloat16
_HALFWAY = math.log2(1.0 + 2.0**-8 + 2.0**-11)


def cases(definition: Definition) -> list[Case]:
    """Return the case of such a factor, where it is an input."""
    if "routed_scaling_factor" not in definition.interface.inputs:
        return []
    (usual,) = (case for case in declared(definition) if case.name == "low-scores")
    moved = {"routed_scaling_factor": _HALFWAY}
    return [with_factors(usual, "factor-of-many-bits", **moved)]
