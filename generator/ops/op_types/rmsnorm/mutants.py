"""Domain mutants of RMS norms: eps, unit offset, residual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    on_inputs,
    on_outputs,
)
from generator.testing.definition import Definition


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of a norm with known eps and unit offset."""
    eps, columns = definition.constants["eps"], definition.axes["hidden_size"]
    # mean square → the divisor in place of sqrt(mean square + eps)
    lengths: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "eps ten times too large": lambda ms: torch.sqrt(ms + 10.0 * eps),
        "eps ten times too small": lambda ms: torch.sqrt(ms + 0.1 * eps),
        "eps missing": torch.sqrt,
        "eps outside the root": lambda ms: torch.sqrt(ms) + eps,
        "sum instead of mean": lambda ms: torch.sqrt(ms * columns + eps),
        "root missing": lambda ms: ms + eps,
        "norm missing": torch.ones_like,
    }
    return (
        *(_divided(definition, name, length) for name, length in lengths.items()),
        *_of_weight(definition),
        *_of_residual(definition),
    )


def _divided(
    definition: Definition, name: str, length: Callable[[torch.Tensor], torch.Tensor]
) -> DomainMutant:
    """Return the mutant that divides rows by another divisor."""
    eps = definition.constants["eps"]

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        (output,) = outputs
        x = inputs["hidden_states"].double()
        if "residual" in inputs:
            x = x + inputs["residual"].double()
        ms = x.square().mean(dim=-1, keepdim=True)
        factor = torch.sqrt(ms + eps) / length(ms)
        return ((output.double() * factor).to(output.dtype),)

    return on_outputs(definition, name, spoil)


def _of_weight(definition: Definition) -> list[DomainMutant]:
    offset = definition.constants["unit_offset"]
    name, sign = ("weight without +1", -1.0) if offset else ("weight with +1", 1.0)

    def other_offset(inputs: Inputs) -> dict[str, Any]:
        weight = inputs["weight"]
        return {"weight": (weight.float() + sign).to(weight.dtype)}

    return [
        on_inputs(definition, name, other_offset),
        on_inputs(
            definition,
            "weight missing",
            lambda i: {"weight": torch.full_like(i["weight"], 0.0 if offset else 1.0)},
        ),
        on_inputs(
            definition,
            "weight of the next column",
            lambda i: {"weight": i["weight"].roll(1)},
        ),
    ]


def _of_residual(definition: Definition) -> list[DomainMutant]:
    if "residual" not in definition.interface.inputs:
        return []
    changes: dict[str, Change] = {
        "residual not added": lambda i: {"residual": torch.zeros_like(i["residual"])},
        "residual subtracted": lambda i: {"residual": -i["residual"]},
        "residual for hidden states": lambda i: {
            "hidden_states": torch.zeros_like(i["hidden_states"])
        },
    }
    return [on_inputs(definition, name, change) for name, change in changes.items()]


MUTANTS = (MutantGroup(mutants, "hidden_states weight hidden_size eps unit_offset"),)
