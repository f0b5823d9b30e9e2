"""The defects of products of segments: another weight, other rows, short sums."""

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
    shifted,
    zeroed,
)
from kernel_judge.definition import Definition


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a product of segments."""
    changes: dict[str, Change] = {
        "weight of the next segment": lambda i: {
            "weight_indices": shifted(i["weight_indices"], 0)
        },
        "weight of the next number": lambda i: {
            "weight_indices": (i["weight_indices"] + 1) % len(i["weights"])
        },
        "indices ignored": lambda i: {
            "weight_indices": torch.arange(len(i["weight_indices"])) % len(i["weights"])
        },
        "first weight for all": lambda i: {
            "weight_indices": torch.zeros_like(i["weight_indices"])
        },
        "segments begin a row late": _late,
        "last product missing": lambda i: {"x": zeroed(i["x"], 1, -1)},
        "columns of the weights shifted": lambda i: {
            "weights": shifted(i["weights"], 2)
        },
        "weights rounded to bfloat16": lambda i: {
            "weights": i["weights"].bfloat16().half()
        },
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(
            definition,
            "output rounded to bfloat16",
            lambda o, i: (o[0].bfloat16().half(),),
        ),
    )


def _late(inputs: Inputs) -> dict[str, Any]:
    bounds = inputs["seg_indptr"].clone()
    bounds[1:-1] = (bounds[1:-1] + 1).clamp(max=int(bounds[-1]))
    return {"seg_indptr": bounds}


MUTANTS = (MutantGroup(mutants, "x weights seg_indptr weight_indices"),)
