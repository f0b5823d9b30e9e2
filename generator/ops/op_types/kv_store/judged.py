"""Cases that only solutions are asked: scales of 1, by which many values are ties.

A bfloat16 number has four bits more than one of e4m3: one of sixteen is halfway between two
codes. Blocks of NVFP4 have multiples of a quarter, and 6 is their largest.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.kv_store.op import make_inputs
from generator.ops.own_inputs import OwnInputs
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

_BLOCK = 16


def cases(definition: Definition) -> list[Case]:
    """Return the case of ties, where rows are stored by a scale."""
    if "k_scale" not in definition.interface.inputs:
        return []
    axes = {"num_tokens": 9, "num_slots": 48}
    return [OwnInputs("ties", "small", axes, make_inputs=_of_ties)]


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
