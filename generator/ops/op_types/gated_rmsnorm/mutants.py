"""The defects of gated norms: eps, the order of norm and gate, the groups."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import silu

from generator.ops.mutants import (
    DomainMutant,
    Inputs,
    MutantGroup,
    computed,
    on_inputs,
)
from kernel_judge.definition import Definition

Formula = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a norm and a gate, in the order that the name states."""
    eps, groups = definition.constants["eps"], definition.axes.get("num_groups", 1)
    first = "gate_first" in definition.constants

    def normed(x: torch.Tensor, eps: float = eps, parts: int = groups) -> torch.Tensor:
        rows = x.reshape(len(x), parts, -1)
        mean = rows.square().mean(dim=-1, keepdim=True)
        return (rows * torch.rsqrt(mean + eps)).reshape(x.shape)

    def both(
        x: torch.Tensor, opened: torch.Tensor, eps: float = eps, parts: int = groups
    ) -> torch.Tensor:
        if first:
            return normed(x * opened, eps, parts)
        return normed(x, eps, parts) * opened

    # from x, the gate and the weight, float32, to the output
    formulas: dict[str, Formula] = {
        "eps ten times too large": lambda x, g, w: both(x, silu(g), 10.0 * eps) * w,
        "eps missing": lambda x, g, w: both(x, silu(g), 1e-30) * w,
        "sigmoid for silu": lambda x, g, w: both(x, g.sigmoid()) * w,
        "silu missing": lambda x, g, w: both(x, g) * w,
        "gate missing": lambda x, g, w: both(x, torch.ones_like(g)) * w,
        "gate negated": lambda x, g, w: both(x, silu(-g)) * w,
        "weight with +1": lambda x, g, w: both(x, silu(g)) * (1.0 + w),
        "weight missing": lambda x, g, w: both(x, silu(g)),
        "norm missing": lambda x, g, w: x * silu(g) * w,
        "gate and rows swapped": lambda x, g, w: both(g, silu(x)) * w,
        "norm of the weighted rows": lambda x, g, w: both(x * w, silu(g)),
    }
    if first:
        formulas["norm before the gate"] = lambda x, g, w: normed(x) * silu(g) * w
        formulas["one group for all"] = lambda x, g, w: both(x, silu(g), parts=1) * w
        formulas["twice as many groups"] = lambda x, g, w: (
            both(x, silu(g), parts=2 * groups) * w
        )
    else:
        formulas["gate before the norm"] = lambda x, g, w: normed(x * silu(g)) * w
        formulas["norm rounded before the gate"] = lambda x, g, w: (
            (normed(x) * w).bfloat16() * silu(g)
        )
    return (
        *(_instead(definition, name, formula) for name, formula in formulas.items()),
        on_inputs(
            definition,
            "gate of the next column",
            lambda i: {"gate": i["gate"].roll(1, 1)},
        ),
        on_inputs(
            definition,
            "weight of the next column",
            lambda i: {"weight": i["weight"].roll(1, -1)},
        ),
    )


def _instead(definition: Definition, name: str, formula: Formula) -> DomainMutant:
    """Return the mutant that computes another formula."""

    def wrong(inputs: Inputs) -> torch.Tensor:
        x, gate = inputs["hidden_states"].float(), inputs["gate"].float()
        return formula(x, gate, inputs["weight"].float().flatten())

    return computed(definition, name, wrong)


MUTANTS = (MutantGroup(mutants, "hidden_states gate weight output eps"),)
