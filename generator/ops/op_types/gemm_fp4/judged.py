"""Cases for solutions alone: blocks whose scale is 0, and rows of any number.

Quantisers give a block a scale of 0 where its values are far below the tensor's, and leave
its codes as they come: some divide by that scale.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.gemm_fp4.op import (
    SMALL_SCALES,
    is_mx,
    is_swizzled,
    make_inputs,
    tiled,
)
from generator.ops.own_inputs import OwnInputs
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

_ROWS = 7


def rows_axes(definition: Definition, rows: int) -> dict[str, int]:
    """Return the axes of a product of so many rows."""
    return tiled(rows) if is_swizzled(definition) else {"M": rows}


def cases(definition: Definition) -> list[Case]:
    """Return the case of scales of 0 among the smallest ones; no power of two is 0."""
    if is_mx(definition):
        return []
    return [
        OwnInputs(
            "zero-scales",
            "small",
            rows_axes(definition, _ROWS),
            moved=SMALL_SCALES,
            make_inputs=_without_scales,
        )
    ]


def _without_scales(
    definition: Definition, case: Case, stream: Stream
) -> dict[str, Any]:
    """Return inputs of which one scale of four is 0, in each of a's and b's."""
    inputs = make_inputs(definition, case, stream)
    for name in ("a_scale", "b_scale"):
        drawn = stream.child(f"{name} of 0").integer_tensor(0, 4, inputs[name].numel())
        is_zero = (drawn == 0).view(inputs[name].shape)
        octets = inputs[name].view(torch.uint8).masked_fill(is_zero, 0)
        inputs[name] = octets.view(torch.float8_e4m3fn)
    return inputs
