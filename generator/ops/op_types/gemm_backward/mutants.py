"""The defects of gradients of products: a term missing, means, shorter sums."""

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
    on_outputs,
    zeroed,
)
from kernel_judge.definition import Definition


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of either gradient."""
    is_wgrad = "A" in definition.interface.inputs
    other = "A" if is_wgrad else "B"
    shorter = torch.float8_e4m3fn
    if definition.interface.outputs == {"main_grad": "float32[N, K]"}:
        shorter = torch.bfloat16

    def product(grad: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        return (grad.float().T if is_wgrad else grad.float()) @ known.float()

    def formula(
        make: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    ) -> Callable[[Inputs], torch.Tensor]:
        return lambda i: make(i["grad_C"], i[other])

    def in_parts(grad: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        # partial sums that are rounded to bfloat16, as of split products
        axis = 0 if is_wgrad else 1
        middle = grad.shape[axis] // 2
        parts = (
            product(grad.narrow(axis, 0, middle), known[:middle]),
            product(
                grad.narrow(axis, middle, grad.shape[axis] - middle), known[middle:]
            ),
        )
        return parts[0].bfloat16().float() + parts[1].bfloat16().float()

    changes: dict[str, Change] = {
        "last token missing": lambda i: {"grad_C": zeroed(i["grad_C"], 0, -1)},
        "last feature missing": lambda i: {"grad_C": zeroed(i["grad_C"], 1, -1)},
        "gradient of the token before": lambda i: {"grad_C": i["grad_C"].roll(1, 0)},
        "gradient of the next feature": lambda i: {"grad_C": i["grad_C"].roll(-1, 1)},
        "rows of the other factor shifted": lambda i: {other: i[other].roll(1, 0)},
        "columns of the other factor shifted": lambda i: {other: i[other].roll(1, 1)},
        "gradient rounded to e4m3": lambda i: {
            "grad_C": i["grad_C"].to(torch.float8_e4m3fn).to(torch.bfloat16)
        },
    }
    formulas = {
        "mean over the tokens": formula(lambda g, x: product(g, x) / max(len(g), 2)),
        "partial sums rounded": formula(in_parts),
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        *(computed(definition, name, change) for name, change in formulas.items()),
        on_outputs(
            definition,
            f"output rounded to {str(shorter).removeprefix('torch.')}",
            lambda o, _: (o[0].to(shorter).to(o[0].dtype),),
        ),
    )


MUTANTS = (MutantGroup(mutants, "grad_C N K"),)
