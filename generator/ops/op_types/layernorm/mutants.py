"""The defects of layer norms: the mean, the variance, eps, scale and bias."""

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
)
from kernel_judge.definition import Definition

# rows float32 [batch_size, hidden_size] → those that scale and bias are applied to
Formula = Callable[[torch.Tensor], torch.Tensor]


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a norm with known eps."""
    eps, columns = definition.constants["eps"], definition.axes["hidden_size"]

    def centred(x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(dim=-1, keepdim=True)

    def square(x: torch.Tensor) -> torch.Tensor:
        return x.square().mean(dim=-1, keepdim=True)

    def variance(x: torch.Tensor) -> torch.Tensor:
        return square(centred(x))

    def unequal(x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(dim=-1, keepdim=True).bfloat16().float()
        return square(x).bfloat16().float() - mean * mean

    formulas: dict[str, Formula] = {
        "eps ten times too large": lambda x: (
            centred(x) * torch.rsqrt(variance(x) + 10.0 * eps)
        ),
        "eps missing": lambda x: centred(x) * torch.rsqrt(variance(x) + 1e-30),
        "eps outside of the root": lambda x: centred(x) / (variance(x).sqrt() + eps),
        "variance by one column less": lambda x: (
            centred(x) * torch.rsqrt(variance(x) * columns / (columns - 1) + eps)
        ),
        "mean not subtracted": lambda x: x * torch.rsqrt(variance(x) + eps),
        "mean square for the variance": lambda x: (
            centred(x) * torch.rsqrt(square(x) + eps)
        ),
        "RMS norm": lambda x: x * torch.rsqrt(square(x) + eps),
        "variance as a difference of bfloat16": lambda x: (
            centred(x) * torch.rsqrt(unequal(x).clamp_min(0.0) + eps)
        ),
        "root missing": lambda x: centred(x) / (variance(x) + eps),
        "norm missing": centred,
    }
    changes: dict[str, Change] = {
        "weight with +1": lambda i: {"weight": i["weight"] + 1.0},
        "weight missing": lambda i: {"weight": torch.ones_like(i["weight"])},
        "bias missing": lambda i: {"bias": torch.zeros_like(i["bias"])},
        "bias before the weight": lambda i: {"bias": i["bias"] * i["weight"]},
        "weight and bias swapped": lambda i: {
            "weight": i["bias"],
            "bias": i["weight"],
        },
        "weight of the next column": lambda i: {"weight": i["weight"].roll(1)},
        "bias of the next column": lambda i: {"bias": i["bias"].roll(1)},
    }
    return (
        *(_instead(definition, name, formula) for name, formula in formulas.items()),
        *(on_inputs(definition, name, change) for name, change in changes.items()),
    )


def _instead(definition: Definition, name: str, formula: Formula) -> DomainMutant:
    """Return the mutant that normalises rows by another formula."""

    def normed(inputs: Inputs) -> torch.Tensor:
        rows: torch.Tensor = formula(inputs["hidden_states"].float())
        return rows.mul(inputs["weight"]).add(inputs["bias"])

    return computed(definition, name, normed)


MUTANTS = (MutantGroup(mutants, "hidden_states weight bias output hidden_size eps"),)
