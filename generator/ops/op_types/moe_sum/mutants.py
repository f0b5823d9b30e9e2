"""The defects of sums over experts: an expert left out, means, factors, roundings."""

from __future__ import annotations

from collections.abc import Callable

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    computed,
    on_inputs,
    shifted,
    truncated,
    zeroed,
)
from kernel_judge.definition import Definition

# rows float32 [num_tokens, topk, hidden_size] and the factor to the output
Formula = Callable[[torch.Tensor, float], torch.Tensor]


def _in_bfloat16(rows: torch.Tensor, factor: float) -> torch.Tensor:
    total = torch.zeros_like(rows[:, 0], dtype=torch.bfloat16)
    for part in rows.unbind(1):
        total = total + part.bfloat16()
    return total.float() * factor


_FORMULAS: dict[str, Formula] = {
    "mean of the experts": lambda x, f: x.mean(1) * f,
    "divided by the factor": lambda x, f: x.sum(1) / f,
    "factor missing": lambda x, f: x.sum(1),
    "factor twice": lambda x, f: x.sum(1) * f * f,
    "factor of the first expert alone": lambda x, f: x[:, 1:].sum(1) + f * x[:, 0],
    "largest of the experts": lambda x, f: x.amax(1) * f,
    "summed in bfloat16": _in_bfloat16,
    "truncated": lambda x, f: truncated(x.sum(1) * f),
    "limited to 448": lambda x, f: (x.sum(1) * f).clamp(-448.0, 448.0),
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a sum over a token's experts."""

    def instead(name: str, formula: Formula) -> DomainMutant:
        def wrong(inputs: Inputs) -> torch.Tensor:
            rows, factor = inputs.values()
            return formula(rows.float(), factor)

        return computed(definition, name, wrong)

    changes: dict[str, Change] = {
        "last expert left out": lambda i: {
            "expert_output": zeroed(i["expert_output"], 1, -1)
        },
        "first expert left out": lambda i: {
            "expert_output": zeroed(i["expert_output"], 1, 0)
        },
        "rows of the token before": lambda i: {
            "expert_output": shifted(i["expert_output"], 0)
        },
        "last column of the next expert": lambda i: {
            "expert_output": i["expert_output"]
            .flatten(1)
            .roll(1, 1)
            .view_as(i["expert_output"])
        },
    }
    return (
        *(instead(name, formula) for name, formula in _FORMULAS.items()),
        *(on_inputs(definition, name, change) for name, change in changes.items()),
    )


MUTANTS = (MutantGroup(mutants, "expert_output routed_scaling_factor output"),)
