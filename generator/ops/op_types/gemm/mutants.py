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
_SHORTER = {
    "float16": torch.bfloat16,
    "bfloat16": torch.float8_e4m3fn,
    "float32": torch.bfloat16,
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants; only a square B can be left untransposed."""
    interface = definition.interface
    (output,) = interface.output_specs.values()
    shorter = _SHORTER[output.dtype]
    less = _SHORTER[interface.input_specs["A"].dtype]
    name = str(shorter).removeprefix("torch.")
    changes: dict[str, Change] = {
        "last product missing": _without_last,
        f"inputs rounded to {str(less).removeprefix('torch.')}": lambda i: {
            name: value.to(less).to(value.dtype) for name, value in i.items()
        },
        "columns of B shifted": lambda i: {"B": i["B"].roll(1, -1)},
    }
    if definition.axes["N"] == definition.axes["K"]:
        changes["B not transposed"] = lambda i: {"B": i["B"].mT.contiguous()}
    if "batch_size" in definition.axes:
        changes["B of the next batch"] = lambda i: {"B": i["B"].roll(1, 0)}
        changes["B of the first batch"] = lambda i: {
            "B": i["B"][:1].expand_as(i["B"]).contiguous()
        }
    if "bias" in interface.inputs:
        changes["bias missing"] = lambda i: {"bias": torch.zeros_like(i["bias"])}
        changes["bias twice"] = lambda i: {"bias": i["bias"] * 2}
        changes["bias of the next column"] = lambda i: {"bias": i["bias"].roll(1, 0)}
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
    a[..., -1] = 0
    return {"A": a}


MUTANTS = (MutantGroup(mutants, "A B N K"),)
