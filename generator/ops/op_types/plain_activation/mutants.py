"""The defects of activations without a gate: another one, constants, limits, roundings."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from generator.ops.mutants import (
    DomainMutant,
    Inputs,
    MutantGroup,
    computed,
    truncated,
)
from kernel_judge.definition import Definition

_GELU = torch.nn.functional.gelu


def _tanh(x: torch.Tensor, cubic: float) -> torch.Tensor:
    inner = math.sqrt(2.0 / math.pi) * (x + cubic * x**3)
    return 0.5 * x * (1.0 + torch.tanh(inner))


# x float32 [num_tokens, intermediate_size] to the output
_FORMULAS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "error function": _GELU,
    "tangent": lambda x: _GELU(x, approximate="tanh"),
    "quick": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": torch.nn.functional.silu,
    "relu": torch.relu,
    "factor of 1.6": lambda x: x * torch.sigmoid(1.6 * x),
    "factor of 1.7": lambda x: x * torch.sigmoid(1.7 * x),
    "without the cubic term": lambda x: _tanh(x, 0.0),
    "cubic term of 0.04": lambda x: _tanh(x, 0.04),
    "not divided by the root of 2": lambda x: 0.5 * x * (1.0 + torch.erf(x)),
    "not halved": lambda x: 2.0 * _GELU(x),
    "derivative": lambda x: 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))),
    "limited to 100": lambda x: _GELU(x).clamp_max(100.0),
    "negative numbers 0": lambda x: _GELU(x).clamp_min(0.0),
    "negative numbers below -3 0": lambda x: torch.where(x < -3.0, 0.0, _GELU(x)),
}
_OWN = {"": "error function", "tanh": "tangent", "quick": "quick"}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of one kind: every other formula, and roundings of its own."""
    (word,) = {*definition.constants} & {*_OWN} or {""}
    right = _FORMULAS[_OWN[word]]
    wrong = {name: f for name, f in _FORMULAS.items() if name != _OWN[word]}
    wrong["share rounded to bfloat16"] = lambda x: (
        x * (right(x) / torch.where(x == 0.0, 1.0, x)).bfloat16().float()
    )
    wrong["truncated"] = lambda x: truncated(right(x))
    wrong["of the row before"] = lambda x: right(x).roll(1, 0)
    return tuple(
        computed(definition, name, _of_rows(formula)) for name, formula in wrong.items()
    )


def _of_rows(
    formula: Callable[[torch.Tensor], torch.Tensor],
) -> Callable[[Inputs], torch.Tensor]:
    return lambda inputs: formula(inputs["x"].float())


MUTANTS = (MutantGroup(mutants, "x output intermediate_size"),)
