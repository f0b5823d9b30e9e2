"""Cases for solutions alone: ties, small scales of blocks, rows of any number.

By a scale of 1 many values are ties: a bfloat16 number has four bits more than one of e4m3,
so that one of sixteen is halfway between two codes. Blocks of NVFP4 have multiples of a
quarter, and 6 is their largest. Their scales are subnormal by a large unit, and 0 where a
block is, as of padding.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.kv_store.op import make_inputs
from generator.ops.own_inputs import OwnInputs
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

_BLOCK = 16
# by which the scales of blocks, of 80 to 448, are from 2^-9 to 2^-6
_LARGER = 2.0**15
# slots for each row
_SLOTS = 3


def rows_axes(definition: Definition, rows: int) -> dict[str, int]:
    """Return the axes of a call that stores so many rows, or copies so many blocks."""
    if "sources" in definition.interface.inputs:
        return {"num_copies": rows, "num_pages": _SLOTS * rows}
    if "page_size" in definition.axes:
        pages = -(-_SLOTS * rows // definition.axes["page_size"])
        return {"num_tokens": rows, "num_pages": pages}
    return {"num_tokens": rows, "num_slots": _SLOTS * rows}


def cases(definition: Definition) -> list[Case]:
    """Return the case of ties, where rows are stored by a scale, and of small scales."""
    if "k_scale" not in definition.interface.inputs:
        return []
    axes = {"num_tokens": 9, "num_slots": 48}
    ties = OwnInputs("ties", "small", axes, make_inputs=_of_ties)
    if "k_scale_cache" not in definition.interface.inputs:
        return [ties]
    return [ties, OwnInputs("small-scales", "small", axes, make_inputs=_of_large_units)]


def _of_large_units(
    definition: Definition, case: Case, stream: Stream
) -> dict[str, Any]:
    """Return rows of which one block in three is 0, and units of thousands of the usual."""
    inputs = make_inputs(definition, case, stream)
    for name in ("k", "v"):
        blocks = inputs[name].reshape(-1, _BLOCK)
        blocks[::3] = 0.0
        inputs[name] = blocks.view(inputs[name].shape)
        inputs[f"{name}_scale"] *= _LARGER
    return inputs


def _of_ties(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    inputs = make_inputs(definition, case, stream)
    inputs |= {"k_scale": 1.0, "v_scale": 1.0}
    if "k_scale_cache" in inputs:
        for name in ("k", "v"):
            inputs[name] = _quarters(inputs[name].shape, stream.child(f"{name} ties"))
    return inputs


def _quarters(shape: torch.Size, stream: Stream) -> torch.Tensor:
    """Return multiples of 1/4 up to 6 of either sign: bfloat16, of each block one is 6."""
    drawn = stream.integer_tensor(-24, 25, shape.numel()).view(-1, _BLOCK) / 4.0
    drawn[:, 0] = 6.0
    return drawn.view(shape).to(torch.bfloat16)
