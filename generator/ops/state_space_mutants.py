"""Domain mutants of both stages of Mamba: softplus, layout of states, groups of heads."""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.mutants import DomainMutant, Inputs, Run, calling, taken
from kernel_judge.definition import Definition
from kernel_judge.inputs.trial import as_tuple

# input → its axis of heads
_HEADS = {"x": 1, "dt": 1, "A": 0, "D": 0, "dt_bias": 0, "state": 1}


def without_softplus(inputs: Inputs) -> dict[str, Any]:
    """Return inputs whose softplus is max(dt + dt_bias, 0), as if softplus were missing.

    The inverse of softplus is log(e^x - 1), about x for large x.
    """
    raw = inputs["dt"].double() + inputs["dt_bias"].double()
    x = raw.clamp_min(1e-6)
    before = torch.where(x > 30.0, x, torch.log(torch.expm1(x.clamp_max(30.0))))
    return {
        "dt": before.to(inputs["dt"].dtype),
        "dt_bias": torch.zeros_like(inputs["dt_bias"]),
    }


def other_layout(run: Run, inputs: dict[str, Any]) -> Any:
    """Read and write each state as [dstate, head_dim]."""
    state = inputs["state"]
    swapped = state.mT.contiguous().view(state.shape)
    output, behind = as_tuple(run(*{**inputs, "state": swapped}.values()))
    shape = (*behind.shape[:2], behind.shape[3], behind.shape[2])
    return output, behind.contiguous().view(shape).mT.contiguous()


def interleaved_groups(definition: Definition) -> DomainMutant:
    """Return the mutant whose head h reads group h % ngroups."""
    groups = definition.axes["ngroups"]
    order = torch.arange(definition.axes["nheads"]).reshape(-1, groups).T.flatten()
    back = order.argsort()

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        moved = {
            name: taken(inputs[name], axis, order) for name, axis in _HEADS.items()
        }
        output, behind = as_tuple(run(*{**inputs, **moved}.values()))
        return taken(output, 1, back), taken(behind, 1, back)

    return calling(definition, "head h reads group h % groups for h // ratio", call)
