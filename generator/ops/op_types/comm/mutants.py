"""Domain mutants of all-reduce, residual and norm: ranks, residual, order, precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

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

# defect → where FlashInfer's fused kernel does it: trtllm_allreduce_fusion.cuh of 0.6.18
_AS_FLASHINFER = {
    "rows rounded before the norm": "vec_add returns rows of the inputs' dtype, and "
    "rms_norm normalises those",
}
_AS_FLASHINFER_OF_TWO = {
    "sum in bfloat16": "allreduce_sum returns sums of the inputs' dtype, to which the "
    "residual is added; between two ranks there is one addition, rounded once",
}
# inputs → the normalised rows and the rows
Formula = Callable[[Inputs], tuple[torch.Tensor, torch.Tensor]]


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of a sum over ranks with known eps."""
    eps, columns = definition.constants["eps"], definition.axes["hidden_size"]
    ranks = definition.axes["world_size"]

    def normed(
        rows: torch.Tensor, inputs: Inputs, to_length: Callable[..., Any] | None = None
    ) -> torch.Tensor:
        square = rows.square().mean(dim=-1, keepdim=True)
        length = torch.sqrt(square + eps) if to_length is None else to_length(square)
        scaled: torch.Tensor = rows / length * inputs["weight"].double()
        return scaled

    def of(rows: Callable[[Inputs], torch.Tensor]) -> Formula:
        return lambda i: (normed(rows(i), i), rows(i))

    def with_length(to_length: Callable[[torch.Tensor], torch.Tensor]) -> Formula:
        return lambda i: (normed(_rows(i), i, to_length), _rows(i))

    formulas: Mapping[str, Formula] = {
        "mean over ranks": of(lambda i: _sum(i) / ranks + _residual(i)),
        "residual added by each rank": of(lambda i: _sum(i) + ranks * _residual(i)),
        "sum in bfloat16": of(lambda i: _rounded_sum(i) + _residual(i)),
        "rows rounded before the norm": lambda i: (
            normed(_rows(i).bfloat16().double(), i),
            _rows(i),
        ),
        "norm of each rank before the sum": lambda i: (
            sum(normed(p.double(), i) for p in i["hidden_states"]) + _residual(i),
            _rows(i),
        ),
        "norm before the residual": lambda i: (normed(_sum(i), i), _rows(i)),
        "rows without the residual": lambda i: (normed(_rows(i), i), _sum(i)),
        "rows after the norm": lambda i: (normed(_rows(i), i), normed(_rows(i), i)),
        "eps missing": with_length(lambda s: torch.sqrt(s + 1e-30)),
        "eps ten times too large": with_length(lambda s: torch.sqrt(s + 10.0 * eps)),
        "eps ten times too small": with_length(lambda s: torch.sqrt(s + 0.1 * eps)),
        "eps outside the root": with_length(lambda s: torch.sqrt(s) + eps),
        "sum instead of mean of squares": with_length(
            lambda s: torch.sqrt(s * columns + eps)
        ),
    }
    changes: dict[str, Change] = {
        "first rank left out": lambda i: _ranks(i, slice(1, None)),
        "last rank left out": lambda i: _ranks(i, slice(0, -1)),
        "first rank alone": lambda i: _ranks(i, slice(0, 1)),
        "first rank for all": lambda i: {
            "hidden_states": i["hidden_states"][:1].expand_as(i["hidden_states"])
        },
        "residual not added": lambda i: {"residual": torch.zeros_like(i["residual"])},
        "residual subtracted": lambda i: {"residual": -i["residual"]},
        "residual of the next row": lambda i: {"residual": i["residual"].roll(1, 0)},
        "weight missing": lambda i: {"weight": torch.ones_like(i["weight"])},
        "weight with +1": lambda i: {
            "weight": (i["weight"].float() + 1.0).to(i["weight"].dtype)
        },
        "weight of the next column": lambda i: {"weight": i["weight"].roll(1)},
    }
    as_kernel = _AS_FLASHINFER | (_AS_FLASHINFER_OF_TWO if ranks == 2 else {})
    instead = (computed(definition, name, f) for name, f in formulas.items())
    return (
        *(replace(m, as_kernel=as_kernel.get(m.name, "")) for m in instead),
        *(on_inputs(definition, name, change) for name, change in changes.items()),
    )


def _sum(inputs: Inputs) -> torch.Tensor:
    total: torch.Tensor = inputs["hidden_states"].double().sum(0)
    return total


def _residual(inputs: Inputs) -> torch.Tensor:
    residual: torch.Tensor = inputs["residual"].double()
    return residual


def _rows(inputs: Inputs) -> torch.Tensor:
    return _sum(inputs) + _residual(inputs)


def _rounded_sum(inputs: Inputs) -> torch.Tensor:
    """Return the sum over ranks with every addition rounded to bfloat16, float64."""
    total, *others = inputs["hidden_states"]
    for part in others:
        total = (total.float() + part.float()).bfloat16()
    rounded: torch.Tensor = total.double()
    return rounded


def _ranks(inputs: Inputs, ranks: slice) -> dict[str, Any]:
    """Return the partial sums with zeros but for some ranks."""
    parts = torch.zeros_like(inputs["hidden_states"])
    parts[ranks] = inputs["hidden_states"][ranks]
    return {"hidden_states": parts}


MUTANTS = (
    MutantGroup(
        mutants, "hidden_states residual weight output residual_out world_size eps"
    ),
)
