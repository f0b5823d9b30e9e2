"""Domain mutants of a product A·Bᵀ."""

from __future__ import annotations

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
    """Return the mutants; only a square B can be left untransposed."""
    changes: dict[str, Change] = {
        "last product missing": _without_last,
        "inputs rounded to bfloat16": lambda i: {
            name: value.bfloat16().to(value.dtype) for name, value in i.items()
        },
        "columns of B shifted": lambda i: {"B": i["B"].roll(1, 1)},
    }
    if definition.axes["N"] == definition.axes["K"]:
        changes["B not transposed"] = lambda i: {"B": i["B"].T.contiguous()}
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "output rounded to bfloat16", _rounded),
    )


def _without_last(inputs: Inputs) -> dict[str, Any]:
    a = inputs["A"].clone()
    a[:, -1] = 0
    return {"A": a}


def _rounded(outputs: Outputs, inputs: Inputs) -> Outputs:
    return tuple(output.to(torch.bfloat16).to(output.dtype) for output in outputs)


MUTANTS = (MutantGroup(mutants, "A B N K"),)
