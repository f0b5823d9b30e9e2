"""The defects of attention's gradients: mask, scale, groups, what the softmax takes away."""

from __future__ import annotations

import math
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

_ROUNDED = "weights rounded to bfloat16"
_AS_FLASH = "flash attention rounds the weights to bfloat16 before the product"


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of the gradients of grouped-query attention."""
    changes: dict[str, Change] = {
        "log-sum-exp taken in base 2": lambda i: {"lse": i["lse"] * math.log(2.0)},
        "log-sum-exp of the head before": lambda i: {"lse": i["lse"].roll(1, 1)},
        "log-sum-exp of the query before": lambda i: {"lse": i["lse"].roll(1, 2)},
        "log-sum-exp rounded to bfloat16": lambda i: {
            "lse": i["lse"].bfloat16().float()
        },
        "output missing": lambda i: {"output": torch.zeros_like(i["output"])},
        "output of the query before": lambda i: {"output": i["output"].roll(1, 1)},
        "keys and values swapped": lambda i: {"k": i["v"], "v": i["k"]},
        "scale 1": lambda i: {"sm_scale": 1.0},
        "scale squared": lambda i: {"sm_scale": i["sm_scale"] ** 2},
        "gradient of the query before": lambda i: {
            "grad_output": i["grad_output"].roll(1, 1)
        },
    }
    variants: dict[str, dict[str, Any]] = {
        "no mask": {"last": None},
        "a key too many": {"last": 1},
        "a key too few": {"last": -1},
        "what the softmax takes away added": {"sign": 1.0},
        "gradient of the logits not scaled": {"scaled": False},
        _ROUNDED: {"rounded": True},
        "softmax again": {"again": True},
    }
    if definition.axes["num_qo_heads"] > definition.axes["num_kv_heads"]:
        variants |= {
            "query heads of a group apart": {"interleaved": True},
            "gradients of the first head of a group alone": {"first": True},
            "mean over a group": {"mean": True},
        }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        *(_instead(definition, name, options) for name, options in variants.items()),
    )


def _instead(
    definition: Definition, name: str, options: dict[str, Any]
) -> DomainMutant:
    """Return the mutant that computes the gradients in another way."""
    mutant = computed(definition, name, lambda i: _gradients(i, **options))
    return replace(mutant, as_kernel=_AS_FLASH) if name == _ROUNDED else mutant


def _gradients(
    inputs: Inputs,
    last: int | None = 0,
    sign: float = -1.0,
    scaled: bool = True,
    rounded: bool = False,
    again: bool = False,
    interleaved: bool = False,
    first: bool = False,
    mean: bool = False,
) -> tuple[torch.Tensor, ...]:
    """Return grad_q, grad_k and grad_v in float32, right where no option is set.

    `last` is the key after a query's own that it sees, None for all.
    """
    grad, q, out = (
        inputs[n].float().transpose(1, 2) for n in ("grad_output", "q", "output")
    )
    count = inputs["k"].shape[2]
    each = q.shape[1] // count
    places = torch.arange(q.shape[1], device=q.device)
    places = places % count if interleaved else places // each
    k, v = (inputs[n].float().transpose(1, 2)[:, places] for n in ("k", "v"))
    logits = q @ k.mT * inputs["sm_scale"]
    weights = (logits - inputs["lse"].unsqueeze(3)).exp()
    if again:
        weights = torch.tril(logits.exp())
        weights = weights / weights.sum(dim=3, keepdim=True)
        weights = weights.softmax(dim=3)
    if last is not None:
        weights = torch.tril(weights, last)
    if rounded:
        weights = weights.bfloat16().float()
    slopes = grad @ v.mT + sign * (grad * out).sum(dim=3, keepdim=True)
    slopes = weights * slopes * (inputs["sm_scale"] if scaled else 1.0)

    def grouped(x: torch.Tensor) -> torch.Tensor:
        if first:
            return x[:, ::each].transpose(1, 2)
        sums = torch.zeros_like(x[:, :count]).index_add_(1, places, x)
        return (sums / each if mean else sums).transpose(1, 2)

    grad_k, grad_v = grouped(slopes.mT @ q), grouped(weights.mT @ grad)
    return (slopes @ k).transpose(1, 2), grad_k, grad_v


MUTANTS = (
    MutantGroup(mutants, "grad_output q k v output lse sm_scale grad_q grad_k grad_v"),
)
