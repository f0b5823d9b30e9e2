"""The defects of greedy sampling: which of the largest, of what, of how many tokens."""

from __future__ import annotations

from collections.abc import Callable

import torch

from generator.ops.mutants import (
    DomainMutant,
    Inputs,
    MutantGroup,
    computed,
)
from kernel_judge.definition import Definition

# logits float32 [batch_size, vocab_size] to tokens int64 [batch_size]
Formula = Callable[[torch.Tensor], torch.Tensor]
_FORMULAS: dict[str, Formula] = {
    "last of ties": lambda x: x.shape[1] - 1 - x.flip(1).argmax(1),
    "smallest": lambda x: x.argmin(1),
    "largest in size": lambda x: x.abs().argmax(1),
    "second largest": lambda x: x.topk(2, dim=1).indices[:, 1],
    "logits rounded to bfloat16": lambda x: x.bfloat16().float().argmax(1),
    "logits rounded to float16": lambda x: x.half().float().argmax(1),
    "last token ignored": lambda x: x[:, :-1].argmax(1),
    "first token ignored": lambda x: x[:, 1:].argmax(1) + 1,
    "first half alone": lambda x: x[:, : x.shape[1] // 2].argmax(1),
    "one further": lambda x: (x.argmax(1) + 1) % x.shape[1],
    "masked tokens taken as 0": lambda x: x.masked_fill(x.isneginf(), 0.0).argmax(1),
    "infinite logits left out": lambda x: x.masked_fill(
        x.isposinf(), -torch.inf
    ).argmax(1),
    "the last token where all are masked": lambda x: torch.where(
        x.isneginf().all(1), x.shape[1] - 1, x.argmax(1)
    ),
    "equal within 1e-6": lambda x: (
        (x >= x.amax(1, keepdim=True) - 1e-6).int().argmax(1)
    ),
    "begun at 0": lambda x: torch.where(x.amax(1) > 0.0, x.argmax(1), 0),
    "row of the whole batch": lambda x: x.argmax() % x.shape[1] + 0 * x.argmax(1),
    "token of the row before": lambda x: x.argmax(1).roll(1),
    "number in the whole batch": lambda x: (
        x.argmax(1) + x.shape[1] * torch.arange(len(x), device=x.device)
    ),
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of an argmax of rows."""

    def chosen(formula: Formula) -> Callable[[Inputs], torch.Tensor]:
        return lambda inputs: formula(inputs["logits"])

    formulas = _FORMULAS.items()
    return tuple(computed(definition, name, chosen(f)) for name, f in formulas)


MUTANTS = (MutantGroup(mutants, "logits tokens vocab_size"),)
