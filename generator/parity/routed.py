"""Experts in bfloat16: a token that would go to others than in float32 goes to those.

A choice between two experts that are all but equal flips by rounding. Another expert
computes something else, and later tokens read that from caches and states: a figure
would say nothing about rounding. Both sides, the chain and transformers in bfloat16, take
float32's experts and weights there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import torch

from generator.parity.capture import choice

Tensor = torch.Tensor
Routes = Mapping[int, Tensor]
"""Layer → weights by expert of each token, 0 for those that are not chosen."""
UNROUTED: Routes = MappingProxyType({})
_SIX = 6.0


def flipped(chosen: Tensor, exact: Tensor) -> Tensor:
    """Return which tokens go to other experts: bool [tokens]."""
    return ((chosen != 0) != (exact != 0)).any(dim=1)


def as_exact(chosen: Tensor, exact: Tensor) -> Tensor:
    """Return weights by expert, with float32's where a token goes to other experts."""
    rows = flipped(chosen, exact)[:, None]
    return torch.where(rows, exact.to(chosen.dtype), chosen)


def returned_as_exact(
    returned: tuple[Tensor, ...], exact: Tensor
) -> tuple[Tensor, ...]:
    """Return what a router of transformers returns, with float32's choice the same way."""
    if len(returned) == 2:
        return as_exact(returned[0], exact), returned[1]
    logits, weights, experts = returned
    rows = flipped(choice(returned), exact)[:, None]
    of_exact = exact.topk(experts.shape[1], dim=1)
    return (
        logits,
        torch.where(rows, of_exact.values.to(weights.dtype), weights),
        torch.where(rows, of_exact.indices.to(experts.dtype), experts),
    )


def too_many(ours: int, theirs: int) -> str:
    """Return in words that a chain flips more choices than rounding explains, or nothing.

    Errors whose squares are twice as large flip √2 times as many; of a count that
    varies as a Poisson's does, six deviations more are allowed.
    """
    expected = math.sqrt(2) * max(theirs, 1)
    if ours <= expected + _SIX * math.sqrt(expected):
        return ""
    return (
        f"{ours} choices of experts are not float32's, transformers' own bfloat16 "
        f"has {theirs} such"
    )
