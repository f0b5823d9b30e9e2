"""The defects of turned gradients: the wrong way, other pairs, angles of other tokens."""

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

# gradient [tokens, heads, head_dim], cosines and sines [tokens, 1, half_dim], float32
Turn = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def _interleaved(x: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    first, second = x[..., 0::2], x[..., 1::2]
    return torch.stack((first * c + second * s, second * c - first * s), -1).flatten(-2)


def _one_half(x: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * c + second * s, second), dim=-1)


def _rounded_angles(x: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    c, s = c.bfloat16().float(), s.bfloat16().float()
    return torch.cat((first * c + second * s, second * c - first * s), dim=-1)


def _rounded_terms(x: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)

    def short(value: torch.Tensor) -> torch.Tensor:
        return value.bfloat16().float()

    parts = (
        short(first * c) + short(second * s),
        short(second * c) - short(first * s),
    )
    return torch.cat(parts, dim=-1)


_TURNS: dict[str, Turn] = {
    "dimensions 2i and 2i + 1 as pairs": _interleaved,
    "first half alone": _one_half,
    "angles rounded to bfloat16": _rounded_angles,
    "terms rounded to bfloat16": _rounded_terms,
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of gradients that turn back."""

    def instead(name: str, turn: Turn) -> DomainMutant:
        def wrong(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
            c, s = inputs["cos"].unsqueeze(1), inputs["sin"].unsqueeze(1)
            q, k = inputs["grad_q"].float(), inputs["grad_k"].float()
            return turn(q, c, s), turn(k, c, s)

        return computed(definition, name, wrong)

    changes: dict[str, Change] = {
        "turned forward": lambda i: {"sin": -i["sin"]},
        "cosines and sines swapped": lambda i: {"cos": i["sin"], "sin": i["cos"]},
        "angles of the token before": lambda i: {
            "cos": i["cos"].roll(1, 0),
            "sin": i["sin"].roll(1, 0),
        },
        "angles of the next pair": lambda i: {
            "cos": i["cos"].roll(-1, 1),
            "sin": i["sin"].roll(-1, 1),
        },
        "first token's angles for all": lambda i: {
            name: i[name][:1].expand_as(i[name]).contiguous() for name in ("cos", "sin")
        },
        "halves exchanged": lambda i: {
            name: torch.cat(i[name].chunk(2, dim=-1)[::-1], dim=-1)
            for name in ("grad_q", "grad_k")
        },
        "head before": lambda i: {"grad_q": i["grad_q"].roll(1, 1)},
        "keys as they are given": lambda i: {"grad_k": torch.zeros_like(i["grad_k"])},
    }
    return (
        *(instead(name, turn) for name, turn in _TURNS.items()),
        *(on_inputs(definition, name, change) for name, change in changes.items()),
    )


MUTANTS = (MutantGroup(mutants, "grad_q grad_k cos sin"),)
