"""Domain mutants of RMS norms: eps, unit offset, residual, rounding, activation."""

from __future__ import annotations

from collections.abc import Callable
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


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of a norm with known eps and unit offset."""
    eps, columns = definition.constants["eps"], definition.axes["hidden_size"]
    # mean square → the divisor in place of sqrt(mean square + eps)
    lengths: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "eps ten times too large": lambda ms: torch.sqrt(ms + 10.0 * eps),
        "eps ten times too small": lambda ms: torch.sqrt(ms + 0.1 * eps),
        "eps missing": torch.sqrt,
        "eps outside the root": lambda ms: torch.sqrt(ms) + eps,
        "sum instead of mean": lambda ms: torch.sqrt(ms * columns + eps),
        "root missing": lambda ms: ms + eps,
        "norm missing": torch.ones_like,
    }
    return (
        *(_divided(definition, name, length) for name, length in lengths.items()),
        *_of_weight(definition),
        *_of_residual(definition),
        *(() if "quantized" in definition.constants else _of_new_residual(definition)),
    )


def _divided(
    definition: Definition, name: str, length: Callable[[torch.Tensor], torch.Tensor]
) -> DomainMutant:
    """Return the mutant that divides rows by another divisor."""
    offset = 1.0 if definition.constants["unit_offset"] else 0.0

    def rows(inputs: Inputs) -> torch.Tensor:
        x = _sum(inputs)
        ms = x.square().mean(dim=-1, keepdim=True)
        divided: torch.Tensor = x / length(ms) * (offset + inputs["weight"].double())
        return divided

    def finished(rows: torch.Tensor, inputs: Inputs) -> torch.Tensor:
        if "activation" in definition.constants:
            rows = torch.nn.functional.silu(rows)
        return rows if "scale" not in inputs else _codes(rows / inputs["scale"])

    return computed(definition, name, lambda i: finished(rows(i), i))


def _sum(inputs: Inputs) -> torch.Tensor:
    x: torch.Tensor = inputs["hidden_states"].double()
    return x + inputs["residual"].double() if "residual" in inputs else x


def _codes(rows: torch.Tensor, most: float = 448.0) -> torch.Tensor:
    return rows.float().clamp(-most, most).to(torch.float8_e4m3fn)


def _of_weight(definition: Definition) -> list[DomainMutant]:
    offset = definition.constants["unit_offset"]
    name, sign = ("weight without +1", -1.0) if offset else ("weight with +1", 1.0)

    def other_offset(inputs: Inputs) -> dict[str, Any]:
        weight = inputs["weight"]
        return {"weight": (weight.float() + sign).to(weight.dtype)}

    return [
        on_inputs(definition, name, other_offset),
        on_inputs(
            definition,
            "weight missing",
            lambda i: {"weight": torch.full_like(i["weight"], 0.0 if offset else 1.0)},
        ),
        on_inputs(
            definition,
            "weight of the next column",
            lambda i: {"weight": i["weight"].roll(1)},
        ),
    ]


def _of_residual(definition: Definition) -> list[DomainMutant]:
    if "residual" not in definition.interface.inputs:
        return []
    changes: dict[str, Change] = {
        "residual not added": lambda i: {"residual": torch.zeros_like(i["residual"])},
        "residual subtracted": lambda i: {"residual": -i["residual"]},
        "residual for hidden states": lambda i: {
            "hidden_states": torch.zeros_like(i["hidden_states"])
        },
    }
    return [on_inputs(definition, name, change) for name, change in changes.items()]


def of_rounding(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of a norm that is rounded to e4m3."""
    eps = definition.constants["eps"]

    def normed(inputs: Inputs, x: torch.Tensor | None = None) -> torch.Tensor:
        x = _sum(inputs) if x is None else x
        rows: torch.Tensor = x * (x.square().mean(dim=-1, keepdim=True) + eps).rsqrt()
        return rows

    def weighted(inputs: Inputs, x: torch.Tensor | None = None) -> torch.Tensor:
        rows: torch.Tensor = normed(inputs, x) * inputs["weight"].double()
        return rows

    def before_the_weight(inputs: Inputs) -> torch.Tensor:
        codes = _codes(normed(inputs) / inputs["scale"]).double()
        rounded: torch.Tensor = codes * inputs["weight"].double()
        return _codes(rounded)

    def own_scale(inputs: Inputs) -> torch.Tensor:
        rows = weighted(inputs)
        return _codes(rows / (rows.abs().amax(dim=-1, keepdim=True) / 448.0 + 1e-12))

    def overflowing(inputs: Inputs) -> torch.Tensor:
        rows: torch.Tensor = weighted(inputs).float() / inputs["scale"]
        return rows.masked_fill(rows.abs() > 464.0, torch.nan)

    formulas: dict[str, Callable[[Inputs], torch.Tensor]] = {
        "rounded before the weight": before_the_weight,
        "rounded to bfloat16 before the scale": lambda i: _codes(
            weighted(i).bfloat16().float() / i["scale"]
        ),
        "scale of each row's own": own_scale,
        "not cut off": overflowing,
        "cut off at 240": lambda i: _codes(weighted(i) / i["scale"], 240.0),
    }
    changes: dict[str, Change] = {
        "multiplied by the scale": lambda i: {"scale": 1.0 / i["scale"]},
        "scale missing": lambda i: {"scale": 1.0},
        "scale of 2 too much": lambda i: {"scale": 2.0 * i["scale"]},
    }
    if "new_residual" in definition.interface.outputs:
        formulas["norm of the rounded sum"] = lambda i: _codes(
            weighted(i, _sum(i).bfloat16().double()) / i["scale"]
        )
    defects = [computed(definition, name, rows) for name, rows in formulas.items()]
    return (
        *defects,
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        *_of_new_residual(definition),
    )


def _of_new_residual(definition: Definition) -> list[DomainMutant]:
    if "new_residual" not in definition.interface.outputs:
        return []
    sources: dict[str, Callable[[Inputs], torch.Tensor]] = {
        "residual returned as it came": lambda i: i["residual"],
        "hidden states returned for the sum": lambda i: i["hidden_states"],
        "rows returned for the sum": lambda i: (
            _sum(i) / _sum(i).square().mean(dim=-1, keepdim=True).sqrt().clamp_min(1e-9)
        ),
    }
    return [computed(definition, name, source, 1) for name, source in sources.items()]


def of_activation(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of the activation behind a norm."""
    eps, silu = definition.constants["eps"], torch.nn.functional.silu

    def normed(x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)

    # from x and the weight, float64, to the output
    formulas: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
        "activation missing": lambda x, w: normed(x) * w,
        "activation before the norm": lambda x, w: normed(silu(x)) * w,
        "activation before the weight": lambda x, w: silu(normed(x)) * w,
        "sigmoid for silu": lambda x, w: torch.sigmoid(normed(x) * w),
        "gelu for silu": lambda x, w: torch.nn.functional.gelu(normed(x) * w),
        "relu for silu": lambda x, w: torch.relu(normed(x) * w),
        "silu of the negated rows": lambda x, w: -silu(-normed(x) * w),
        "silu twice": lambda x, w: silu(silu(normed(x) * w)),
        "rounded before the activation": lambda x, w: silu(
            (normed(x) * w).bfloat16().double()
        ),
    }

    def of(formula: Callable[..., torch.Tensor]) -> Callable[[Inputs], torch.Tensor]:
        return lambda i: formula(i["hidden_states"].double(), i["weight"].double())

    return tuple(
        computed(definition, name, of(formula)) for name, formula in formulas.items()
    )


MUTANTS = (
    MutantGroup(mutants, "hidden_states weight hidden_size eps unit_offset"),
    MutantGroup(of_rounding, "hidden_states weight scale eps quantized"),
    MutantGroup(of_activation, "hidden_states weight eps activation"),
)
