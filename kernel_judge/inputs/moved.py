"""Inputs times powers of two: floats keep their significant bits, and bounds stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from kernel_judge.inputs.lazy_weights import Tiled


def moved(values: Mapping[str, Any], exponents: Mapping[str, float]) -> dict[str, Any]:
    """Return inputs of which some are multiplied by 2 to their exponent.

    Inputs that the interface lacks are passed over. In bytes that are exponents of two it
    is added.
    """
    copied = dict(values)
    for name in exponents.keys() & copied.keys():
        copied[name] = _times(copied[name], exponents[name])
    return copied


def _times(value: Any, exponent: float) -> Any:
    if value is None:
        return None
    if isinstance(value, Tiled):
        return Tiled(_times(value.base, exponent), value.shape)
    if not isinstance(value, torch.Tensor):
        return value * 2.0**exponent
    if value.is_floating_point():
        wide = value.double() * 2.0**exponent
        if value.dtype.itemsize == 1:
            # versions of torch differ in what they make of more than the largest
            most = torch.finfo(value.dtype).max
            wide = wide.clamp(-most, most)
        return wide.to(value.dtype)
    return (value.view(torch.uint8) + int(exponent)).view(value.dtype)
