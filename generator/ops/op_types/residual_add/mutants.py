"""The defects of residual sums: a term missing, twice, of another place, rounded."""

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
    truncated,
)
from kernel_judge.definition import Definition

# hidden_states and residual, float32 [num_tokens, hidden_size] each, to the output
Formula = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_FORMULAS: dict[str, Formula] = {
    "hidden states missing": lambda x, r: r,
    "residual missing": lambda x, r: x,
    "residual subtracted": lambda x, r: x - r,
    "hidden states subtracted": lambda x, r: r - x,
    "residual added twice": lambda x, r: x + 2.0 * r,
    "mean of both": lambda x, r: (x + r) / 2.0,
    "product": lambda x, r: x * r,
    "sum truncated": lambda x, r: truncated(x + r),
    "limited to 256": lambda x, r: (x + r).clamp(-256.0, 256.0),
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a sum of two rows."""
    changes: dict[str, Change] = {
        "residual of the row before": lambda i: {"residual": i["residual"].roll(1, 0)},
        "residual of the next column": lambda i: {
            "residual": i["residual"].roll(-1, 1)
        },
        "residual of the first row": lambda i: {
            "residual": i["residual"][:1].expand_as(i["residual"]).contiguous()
        },
    }
    return (
        *(_instead(definition, name, formula) for name, formula in _FORMULAS.items()),
        *(on_inputs(definition, name, change) for name, change in changes.items()),
    )


def _instead(definition: Definition, name: str, formula: Formula) -> DomainMutant:
    """Return the mutant that computes another formula."""

    def wrong(inputs: Inputs) -> torch.Tensor:
        return formula(inputs["hidden_states"].float(), inputs["residual"].float())

    return computed(definition, name, wrong)


MUTANTS = (MutantGroup(mutants, "hidden_states residual output"),)
