"""Values of timed calls: each call has its own, and nobody can get them from others.

An input of floats, or of bytes that are codes, is mixed of two draws of the op's own
inputs: of each element one of both, by a bit that only the judge knows. Whatever an
op allows of an element it allows of it in another set of values. Half of the elements
differ from any other call's, at places that no rule gives: an answer is not a permutation
of another one, nor near it. Integers and bools, which refer to each other, are those of
one of the draws; where rows know nothing of each other, in another order of rows, so that
what follows from integers alone can't be kept either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from generator.evaluation.draws import SECRETS, draws_of

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_CODES = (torch.uint8, torch.int8)


class FreshInputs:
    """New values of one workload, made of draws of its inputs, on a device.

    `rows` are the dimensions that number the rows, by input. Raises ValueError for draws that don't have the same shapes.
    """

    def __init__(
        self,
        draws: Sequence[Mapping[str, Any]],
        device: str,
        secret: int | str,
        rows: Mapping[str, int] | None = None,
    ) -> None:
        first = draws[0]
        for draw in draws:
            if {n: _form(v) for n, v in draw.items()} != {
                n: _form(v) for n, v in first.items()
            }:
                raise ValueError("two draws of a workload have other shapes")
        self._draws = draws
        self._draw = draws_of(secret, "timed values")
        self._bits = torch.Generator(device)
        self._bits.manual_seed(self._draw.randrange(SECRETS))
        self._mixed = [n for n, v in first.items() if _is_mixed(v)]
        self._rows = {n: d for n, d in (rows or {}).items() if n not in self._mixed}
        self.is_fresh = any(
            not torch.equal(_words(draws[0][n]), _words(draws[1][n]))
            for n in self._mixed
        )

    def next(self) -> dict[str, Any]:
        """Return the values of a call."""
        whole = self._draws[self._draw.randrange(len(self._draws))]
        values = {**whole, **self._in_another_order(whole)}
        first, second = self._draws[:2]
        for name in self._mixed:
            a, b = _words(first[name]), _words(second[name])
            bits = torch.randint(
                0, 2, a.shape, generator=self._bits, device=a.device, dtype=torch.uint8
            )
            mixed = torch.where(bits.bool(), a, b)
            values[name] = mixed.view(first[name].dtype).view(first[name].shape)
        return values

    def _in_another_order(self, whole: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """Return the integers of a draw with their rows in an order by lot."""
        if not self._rows:
            return {}
        name, dim = next(iter(self._rows.items()))
        count, device = whole[name].shape[dim], self._bits.device
        order = torch.randperm(count, generator=self._bits, device=device)
        return {n: whole[n].index_select(d, order) for n, d in self._rows.items()}


def _form(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape)
    return None


def _is_mixed(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.numel() == 0:
        return False
    is_float4 = "float4" in str(value.dtype)
    return value.is_floating_point() or value.dtype in _CODES or is_float4


def _words(value: torch.Tensor) -> torch.Tensor:
    flat = value.contiguous().view(torch.uint8) if value.dim() else value.view(1)
    return flat.reshape(-1).view(torch.uint8).view(_WORDS[value.dtype.itemsize])
