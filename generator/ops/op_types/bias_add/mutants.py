"""The defects of biases: missing, twice, of another column, of some rows alone."""

from __future__ import annotations

from collections.abc import Callable

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    computed,
    on_inputs,
    on_outputs,
    truncated,
)
from kernel_judge.definition import Definition

# input float32 [num_tokens, features] and bias [features] to the output
Formula = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_FORMULAS: dict[str, Formula] = {
    "input missing": lambda x, b: 0.0 * x + b,
    "bias missing": lambda x, b: x,
    "bias subtracted": lambda x, b: x - b,
    "bias added twice": lambda x, b: x + 2.0 * b,
    "product": lambda x, b: x * b,
    "sum truncated": lambda x, b: truncated(x + b),
    "limited to 256": lambda x, b: (x + b).clamp(-256.0, 256.0),
    "mean of the bias": lambda x, b: x + b.mean(),
    "relu behind it": lambda x, b: (x + b).relu(),
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of rows and a bias."""
    changes: dict[str, Change] = {
        "bias of the next column": lambda i: {"bias": i["bias"].roll(-1)},
        "bias in reverse": lambda i: {"bias": i["bias"].flip(0)},
    }

    def first_row_alone(outputs: Outputs, inputs: Inputs) -> Outputs:
        return (torch.cat((outputs[0][:1], inputs["input"][1:])),)

    return (
        *(_instead(definition, name, formula) for name, formula in _FORMULAS.items()),
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "bias of the first row alone", first_row_alone),
    )


def _instead(definition: Definition, name: str, formula: Formula) -> DomainMutant:
    """Return the mutant that computes another formula."""

    def wrong(inputs: Inputs) -> torch.Tensor:
        return formula(inputs["input"].float(), inputs["bias"].float())

    return computed(definition, name, wrong)


MUTANTS = (MutantGroup(mutants, "input bias output"),)
