"""Draws of two samplers that differ only where their laws do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

_SEED = 6_364_136


@contextmanager
def coupled_draws() -> Iterator[None]:
    """Let torch.multinomial draw by one random number a row, whatever the columns.

    torch's own draws depend on how many columns there are: two ways to write the same
    law give other samples. Here the number picks the place at which the sum of the
    weights, from the first column on, passes that share of the total: equal laws over
    equal tokens give equal draws. More draws than one a row are left to torch.
    """
    numbers = torch.Generator().manual_seed(_SEED)
    original = torch.multinomial

    def multinomial(weights: torch.Tensor, count: int, *rest: Any, **more: Any) -> Any:
        if count != 1 or weights.ndim != 2 or not bool((weights >= 0).all()):
            return original(weights, count, *rest, **more)
        sums = weights.double().cumsum(dim=1)
        total = sums[:, -1:]
        if not bool((total > 0).all()) or not bool(total.isfinite().all()):
            return original(weights, count, *rest, **more)
        share = torch.rand(len(weights), 1, generator=numbers, dtype=torch.float64)
        return torch.searchsorted(sums, share * total, right=True)

    with mock.patch.object(torch, "multinomial", multinomial):
        yield
