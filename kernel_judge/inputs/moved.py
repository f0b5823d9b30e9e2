"""Factors far from their usual values, and what they multiply as far the other way.

An interface takes scales of any size; quantisers and routers make some of them. Times a
power of two, floats keep their significant bits, so that bounds stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from kernel_judge.definition import LIMITS, Case
from kernel_judge.inputs.lazy_weights import Tiled


def with_factors(case: Case, name: str, **exponents: float) -> Case:
    """Return the case of limits whose inputs are those of another times powers of two."""
    return replace(case, name=name, size=LIMITS, moved=exponents)


def far_apart(
    case: Case, *names: str, against: tuple[str, ...] = (), exponent: float = 12.0
) -> list[Case]:
    """Return two cases: factors 2^exponent times as large, what they multiply as small.

    In the second it is the other way round. `names` are of inputs, those `against` them
    of what takes the other sign.
    """
    return [
        with_factors(
            case,
            name,
            **dict.fromkeys(names, power),
            **dict.fromkeys(against, -power),
        )
        for name, power in (("factors-up", exponent), ("factors-down", -exponent))
    ]


def moved(values: Mapping[str, Any], exponents: Mapping[str, float]) -> dict[str, Any]:
    """Return inputs of which some are multiplied by 2 to their exponent.

    Inputs that the interface lacks are passed over. In bytes that are exponents of two it
    is added.
    """
    made = dict(values)
    for name in exponents.keys() & made.keys():
        made[name] = _times(made[name], exponents[name])
    return made


def _times(value: Any, exponent: float) -> Any:
    if value is None:
        return None
    if isinstance(value, Tiled):
        return Tiled(_times(value.base, exponent), value.shape)
    if not isinstance(value, torch.Tensor):
        return value * 2.0**exponent
    if value.is_floating_point():
        return (value.double() * 2.0**exponent).to(value.dtype)
    return (value.view(torch.uint8) + int(exponent)).view(value.dtype)
