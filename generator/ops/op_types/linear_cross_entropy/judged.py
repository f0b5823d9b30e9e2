"""Labels below 0 other than PyTorch's, which solutions alone are asked; inputs of one call.

The forward pass computed the log-sum-exp from its inputs: a solution may do so again.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.linear_cross_entropy.op import make_inputs
from generator.ops.own_inputs import OwnInputs
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

INPUTS_GO_TOGETHER = {"lse": ("hidden_states", "weight")}
_BELOW = (-1, -100, -2, -(2**40))


def cases(definition: Definition) -> list[Case]:
    """Return the case of labels below 0, which are all ignored."""
    axes = {"num_tokens": len(_BELOW) + 1}
    return [OwnInputs("labels-below", "small", axes, make_inputs=_made)]


def _made(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    inputs = make_inputs(definition, case, stream)
    labels = torch.tensor([*_BELOW, int(inputs["labels"][-1])])
    return {**inputs, "labels": labels}
