"""The defects of merging: another base, no normalising, parts taken for each other."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from generator.ops.mutants import (
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    computed,
)
from generator.ops.op_types.cascade_merge.states import states_of
from kernel_judge.definition import Definition

# from v [seq_len, parts, heads, d] in float32 and s [seq_len, parts, heads] to both
# outputs in float32
Formula = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def _lse(s: torch.Tensor) -> torch.Tensor:
    return torch.logsumexp(s * math.log(2.0), dim=1) / math.log(2.0)


def _weighted(v: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return (weights[..., None] * v).sum(dim=1)


def _share(s: torch.Tensor) -> torch.Tensor:
    """Return the weights of the parts, which add up to 1."""
    return torch.softmax(s * math.log(2.0), dim=1).nan_to_num(0.0)


_FORMULAS: dict[str, Formula] = {
    "weights of natural exponentials": lambda v, s: (
        _weighted(v, torch.softmax(s, dim=1).nan_to_num(0.0)),
        _lse(s),
    ),
    "LSE in natural units": lambda v, s: (
        _weighted(v, _share(s)),
        torch.logsumexp(s, dim=1),
    ),
    "LSE of the largest part": lambda v, s: (_weighted(v, _share(s)), s.amax(dim=1)),
    "LSE of all parts added": lambda v, s: (_weighted(v, _share(s)), s.sum(dim=1)),
    "weights not normalised": lambda v, s: (
        _weighted(v, torch.exp2(s - s.amax(dim=1, keepdim=True)).nan_to_num(0.0)),
        _lse(s),
    ),
    "mean of the parts": lambda v, s: (v.mean(dim=1), _lse(s)),
    "part of the largest LSE alone": lambda v, s: (
        v.take_along_dim(s.argmax(dim=1, keepdim=True)[..., None], dim=1)[:, 0],
        _lse(s),
    ),
    "weights of the other parts": lambda v, s: (
        _weighted(v, _share(s).roll(1, 1)),
        _lse(s),
    ),
    "weights by LSE alone": lambda v, s: (
        _weighted(v, s / s.sum(dim=1, keepdim=True)).nan_to_num(0.0),
        _lse(s),
    ),
    "last part ignored": lambda v, s: (
        _weighted(v[:, :-1], _share(s[:, :-1])),
        _lse(s[:, :-1]),
    ),
    "first part ignored": lambda v, s: (
        _weighted(v[:, 1:], _share(s[:, 1:])),
        _lse(s[:, 1:]),
    ),
    "weights in bfloat16": lambda v, s: (
        _weighted(v, _share(s).bfloat16().float()),
        _lse(s),
    ),
    "not a number where no part has keys": lambda v, s: (
        _weighted(v, torch.softmax(s * math.log(2.0), dim=1)),
        _lse(s),
    ),
    "LSE of no key a finite number": lambda v, s: (
        _weighted(v, _share(s)),
        _lse(s).nan_to_num(neginf=-5e4),
    ),
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of merging two or several states."""
    return tuple(
        _instead(definition, name, formula) for name, formula in _FORMULAS.items()
    )


def _instead(definition: Definition, name: str, formula: Formula) -> DomainMutant:
    """Return the mutant that computes another formula."""

    def wrong(inputs: Inputs) -> Outputs:
        v, s = states_of(inputs)
        return formula(v.float(), s)

    return computed(definition, name, wrong)


MUTANTS = (MutantGroup(mutants, "v_merged s_merged num_heads head_dim"),)
