"""Domains of inputs: where values may lie that a runner draws as `random`.

A definition states one beside an input's dtype. Runners draw floats from the normal
distribution and bytes evenly, whatever an operation takes; `into` makes such draws valid
values, by one formula a domain, which any runner can repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch


def _unit(x: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    length = wide.square().sum(dim=-1, keepdim=True).sqrt().clamp_min(1e-30)
    return wide / length


def _powers(x: torch.Tensor) -> torch.Tensor:
    """Return exponents of -8 to 7 with a bias of 127: the upper half of each byte."""
    return ((x.view(torch.int8) >> 4).int() + 127).to(torch.uint8).view(torch.int8)


DOMAINS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    # each vector along the last axis has length 1: x / |x|
    "unit": _unit,
    # -|x|
    "negative": lambda x: -x.float().abs(),
    # |x|
    "non-negative": lambda x: x.float().abs(),
    # along the last axis they add up to 1: softmax(x)
    "probabilities": lambda x: x.float().softmax(dim=-1),
    # bytes of float8_e8m0fnu from 2^-8 to 2^7
    "powers-of-two": _powers,
}


def into(domain: str, drawn: torch.Tensor) -> torch.Tensor:
    """Return drawn values as values of a domain, of their shape and dtype.

    Raises KeyError for a domain that is none.
    """
    moved = DOMAINS[domain](drawn)
    return (
        moved.view(drawn.dtype) if domain == "powers-of-two" else moved.to(drawn.dtype)
    )
