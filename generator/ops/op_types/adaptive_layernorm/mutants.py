"""The defects of adaptive layer norms: gains, shifts, samples, the norm itself."""

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

# rows, gain and shift (one row a sample), float32, and eps
Formula = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, float], torch.Tensor]


def _normed(x: torch.Tensor, eps: float) -> torch.Tensor:
    rows = x - x.mean(-1, keepdim=True)
    return rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + eps)


def _unbiased(x: torch.Tensor, eps: float) -> torch.Tensor:
    rows = x - x.mean(-1, keepdim=True)
    return rows * torch.rsqrt(x.var(-1, keepdim=True) + eps)


def _rms(x: torch.Tensor, eps: float) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


_FORMULAS: dict[str, Formula] = {
    "1 not added": lambda x, g, s, e: _normed(x, e) * g + s,
    "gain missing": lambda x, g, s, e: _normed(x, e) + s,
    "shift missing": lambda x, g, s, e: _normed(x, e) * (1 + g),
    "shift before the gain": lambda x, g, s, e: (_normed(x, e) + s) * (1 + g),
    "shift subtracted": lambda x, g, s, e: _normed(x, e) * (1 + g) - s,
    "gain subtracted": lambda x, g, s, e: _normed(x, e) * (1 - g) + s,
    "RMS norm": lambda x, g, s, e: _rms(x, e) * (1 + g) + s,
    "variance of one column less": lambda x, g, s, e: _unbiased(x, e) * (1 + g) + s,
    "eps ten times": lambda x, g, s, e: _normed(x, 10 * e) * (1 + g) + s,
    "eps of 0": lambda x, g, s, e: _normed(x, 1e-30) * (1 + g) + s,
    "not normalised": lambda x, g, s, e: x * (1 + g) + s,
    "truncated": lambda x, g, s, e: truncated(_normed(x, e) * (1 + g) + s),
    "norm rounded to bfloat16": lambda x, g, s, e: (
        _normed(x, e).bfloat16().float() * (1 + g) + s
    ),
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a modulated norm."""

    def instead(name: str, formula: Formula) -> DomainMutant:
        def wrong(inputs: Inputs) -> torch.Tensor:
            x, gain, shift = (value.float() for value in inputs.values())
            eps = definition.constants["eps"]
            return formula(x, gain[:, None], shift[:, None], eps)

        return computed(definition, name, wrong)

    changes: dict[str, Change] = {
        "gain and shift swapped": lambda i: {"gain": i["shift"], "shift": i["gain"]},
        "gain of the next sample": lambda i: {"gain": i["gain"].roll(-1, 0)},
        "shift of the first sample": lambda i: {
            "shift": i["shift"][:1].expand_as(i["shift"]).contiguous()
        },
        "gain of the next column": lambda i: {"gain": i["gain"].roll(-1, 1)},
    }
    return (
        *(instead(name, formula) for name, formula in _FORMULAS.items()),
        *(on_inputs(definition, name, change) for name, change in changes.items()),
    )


MUTANTS = (MutantGroup(mutants, "hidden_states gain shift eps"),)
