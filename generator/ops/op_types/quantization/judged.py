"""Cases that only solutions are asked: far magnitudes, small scales, factors of many bits.

Powers of two of mx have 8 bits: blocks 2^40 times as large and as small as the usual are
as any others. Of NVFP4 no block has a stored scale of 0 but those of zeros: production
kernels divide by it, and what a code is beneath it says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from generator.ops.far_factors import with_factors
from generator.ops.op_types.quantization.formats import format_of
from generator.ops.op_types.quantization.op import make_inputs
from generator.ops.own_inputs import OwnInputs
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import MakeInputs

# times a value of 8 bits it is exact in float32; neither bfloat16 nor float16 has it
_MANY_BITS = 1.0 + 2.0**-8 + 2.0**-12 + 2.0**-15
# scales of 20 to 448 times this are mostly subnormal, and none is less than 2^-10
_SMALL = 2.0**-14
# magnitudes up to 17 times these are on both sides of 1e-10
_NEAR_LEAST = 2.0**-34, 2.0**-38
_FAR = 40.0
_ROWS = 5


def cases(definition: Definition) -> list[Case]:
    """Return the cases of NVFP4's factor, and of the least largest magnitude."""
    form = format_of(definition)
    if form.is_mx or form.dequantises:
        return []
    makers: dict[str, MakeInputs] = {"around-the-least": _around_the_least}
    if form.is_global:
        makers = {
            "factor-of-many-bits": _of_many_bits,
            "small-scales": _of_small_scales,
        }
    return [
        OwnInputs(name, "small", {"M": _ROWS}, make_inputs=maker)
        for name, maker in makers.items()
    ]


def _of_many_bits(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    inputs = make_inputs(definition, case, stream)
    power = math.floor(math.log2(inputs["global_scale"]))
    return {**inputs, "global_scale": 2.0**power * _MANY_BITS}


def _of_small_scales(
    definition: Definition, case: Case, stream: Stream
) -> dict[str, Any]:
    inputs = make_inputs(definition, case, stream)
    return {**inputs, "global_scale": inputs["global_scale"] * _SMALL}


def _around_the_least(
    definition: Definition, case: Case, stream: Stream
) -> dict[str, Any]:
    """Return rows whose blocks have, in turn, less and more than 1e-10."""
    inputs = make_inputs(definition, case, stream)
    (name,) = inputs
    blocks = inputs[name].view(_ROWS, definition.axes["num_blocks"], -1)
    turns = torch.arange(blocks.shape[0] * blocks.shape[1]) % 2
    powers = torch.tensor(_NEAR_LEAST)[turns].view(blocks.shape[:2])[..., None]
    return {name: (blocks * powers).to(blocks.dtype).view(inputs[name].shape)}


def far_cases(definition: Definition, declared: Sequence[Case]) -> list[Case]:
    """Return the declared cases of far factors, and powers of two far from the usual."""
    far = [case for case in declared if case.moved]
    if not format_of(definition).is_mx:
        return far
    names = definition.interface.inputs
    name = "scales" if "scales" in names else next(iter(names))
    (usual,) = (case for case in declared if case.name == "odd-rows")
    return far + [
        with_factors(usual, title, **{name: power})
        for title, power in (("far-up", _FAR), ("far-down", -_FAR))
    ]
