"""Domain mutants of a product A·Bᵀ."""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    on_inputs,
    on_outputs,
)
from kernel_judge.definition import Definition

# shorter dtypes that a product may be rounded to
_SHORTER = {"float16": torch.bfloat16, "bfloat16": torch.float8_e4m3fn}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants; only a square B can be left untransposed."""
    shorter = _SHORTER[definition.interface.output_specs["C"].dtype]
    name = str(shorter).removeprefix("torch.")
    changes: dict[str, Change] = {
        "last product missing": _without_last,
        f"inputs rounded to {name}": lambda i: {
            name: value.to(shorter).to(value.dtype) for name, value in i.items()
        },
        "columns of B shifted": lambda i: {"B": i["B"].roll(1, 1)},
    }
    if definition.axes["N"] == definition.axes["K"]:
        changes["B not transposed"] = lambda i: {"B": i["B"].T.contiguous()}
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(
            definition,
            f"output rounded to {name}",
            lambda o, i: (o[0].to(shorter).to(o[0].dtype),),
        ),
    )


def _without_last(inputs: Inputs) -> dict[str, Any]:
    a = inputs["A"].clone()
    a[:, -1] = 0
    return {"A": a}


MUTANTS = (MutantGroup(mutants, "A B N K"),)
