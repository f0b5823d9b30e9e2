"""Couple the draws of two samplers: they differ only if their distributions do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

_SEED = 6_364_136


@contextmanager
def coupled_draws() -> Iterator[None]:
    """Let torch.multinomial draw by one random number a row (inverse transform).

    torch's own draws depend on the number of columns, so that two ways to write one
    distribution give different samples. Here a row's draw is the first column at which
    the cumulative weight exceeds the random share of the total: equal distributions
    give equal draws. Calls for more than one draw a row are left to torch.
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
