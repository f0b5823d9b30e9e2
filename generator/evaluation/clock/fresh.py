"""Values of timed calls: each call has its own, and nobody can get them from others.

An input of floats, or of bytes that are codes, is mixed of two draws of the op's own
inputs: of each element one of both, by a bit that only the judge knows. Whatever an
op allows of an element it allows of it in another set of values. Half of the elements
differ from any other call's, at places that no rule gives: an answer is not a permutation
of another one, nor near it. Integers and bools, which refer to each other, are those of
one of the draws.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_CODES = (torch.uint8, torch.int8)


class Fresh:
    """Make values of one workload from draws of its inputs, on a device.

    Raises ValueError for draws that don't have the same shapes.
    """

    def __init__(
        self, draws: Sequence[Mapping[str, Any]], device: str, secret: int
    ) -> None:
        first = draws[0]
        for draw in draws:
            if {n: _form(v) for n, v in draw.items()} != {
                n: _form(v) for n, v in first.items()
            }:
                raise ValueError("two draws of a workload have other shapes")
        self._draws = draws
        self._draw = random.Random(secret)
        self._bits = torch.Generator(device)
        self._bits.manual_seed(self._draw.randrange(2**62))
        self._mixed = [n for n, v in first.items() if _is_mixed(v)]
        self.is_fresh = any(
            not torch.equal(_words(draws[0][n]), _words(draws[1][n]))
            for n in self._mixed
        )

    def next(self) -> dict[str, Any]:
        """Return the values of a call."""
        whole = self._draws[self._draw.randrange(len(self._draws))]
        found = dict(whole)
        first, second = self._draws[:2]
        for name in self._mixed:
            a, b = _words(first[name]), _words(second[name])
            bits = torch.randint(
                0, 2, a.shape, generator=self._bits, device=a.device, dtype=torch.uint8
            )
            mixed = torch.where(bits.bool(), a, b)
            found[name] = mixed.view(first[name].dtype).view(first[name].shape)
        return found


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
