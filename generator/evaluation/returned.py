"""A call's return value, as described by its process, checked against the definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from generator.evaluation.arena import Layout, Slot
from generator.evaluation.verdict import (
    INCORRECT_DTYPE,
    INCORRECT_SHAPE,
    REWARD_HACK,
    Refused,
)

_PASSED = "passed"
# bytes of an answer that was read
_READ = 0xFD
_MOST_DIMENSIONS, _MOST_TEXT = 64, 200
_INTEGERS = range(-(2**63), 2**64)


@dataclass(frozen=True)
class Returned:
    """One value that a call returned: a number, a tensor, or an object of a kind.

    A tensor has a `dtype`; one that is strided on the judged device `aliases` where it
    lies in the memory of an input.
    """

    value: bool | int | float | None = None
    kind: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    device: str = ""
    layout: str = ""
    aliases: bool = False


def parsed(described: object, passes_outputs: bool) -> tuple[Returned, ...] | None:
    """Return the values that an answer describes; None where outputs were passed.

    Raises Refused for whatever the worker's own code does not say.
    """
    if passes_outputs:
        if described == _PASSED:
            return None
    elif isinstance(described, list):
        values = [_parsed(one) for one in described]
        if None not in values:
            return tuple(one for one in values if one is not None)
    raise Refused(REWARD_HACK, "its answer to a call is none that the worker gives")


def _parsed(one: object) -> Returned | None:
    if not isinstance(one, dict):
        return None
    if set(one) == {"value"}:
        value = one["value"]
        is_number = isinstance(value, (bool, float)) or (
            isinstance(value, int) and value in _INTEGERS
        )
        return Returned(value=value) if is_number else None
    texts = [one.get("type"), *(one.get(n, "") for n in ("dtype", "device", "layout"))]
    if not all(isinstance(t, str) and len(t) <= _MOST_TEXT for t in texts):
        return None
    shape, aliases = one.get("shape", []), one.get("aliases", False)
    is_shape = isinstance(shape, list) and len(shape) <= _MOST_DIMENSIONS
    if not is_shape or not all(type(n) is int and n in _INTEGERS for n in shape):
        return None
    if type(aliases) is not bool:
        return None
    kind, dtype, device, layout = map(str, texts)
    return Returned(None, kind, dtype, tuple(shape), device, layout, aliases)


def output_of(shared: Slot, place: Mapping[str, Any], one: Returned | None) -> Any:
    """Return an output: what lies in its place, or the number that was returned.

    Raises Refused for a number that its dtype does not hold.
    """
    value = None if one is None else one.value
    if "at" not in place:
        return value
    if value is None:
        return shared.taken(dict(place))
    try:
        return torch.tensor(value, dtype=getattr(torch, place["dtype"]))
    except (RuntimeError, OverflowError, TypeError) as error:
        why = f"it returned {value}, which no {place['dtype']} holds"
        raise Refused(INCORRECT_DTYPE, why) from error


def was_returned_before(output: Any) -> bool:
    """Return whether an output has nothing but what the worker overwrites answers with."""
    is_one = isinstance(output, torch.Tensor) and output.is_floating_point()
    if not is_one or output.numel() == 0 or output.element_size() == 1:
        return False
    flat = output.contiguous().view(torch.uint8).reshape(-1)
    # nearly all say no at once
    return all(bool((part == _READ).all()) for part in (flat[:8], flat))


def check_returned(returned: Sequence[Returned], layout: Layout, device: str) -> None:
    """Hold what was returned against what is declared. Raises Refused."""
    if len(returned) != len(layout.outputs):
        why = f"it returned {len(returned)} values, {len(layout.outputs)} are declared"
        raise Refused(INCORRECT_SHAPE, why)
    for number, (one, place) in enumerate(zip(returned, layout.outputs, strict=True)):
        where = f"output {number}"
        if "at" not in place or (one.value is not None and not place["shape"]):
            if one.value is None:
                raise Refused(INCORRECT_DTYPE, f"{where} is no number")
            continue
        if one.kind != "torch.Tensor" or not one.dtype:
            verdict = REWARD_HACK if one.dtype else INCORRECT_DTYPE
            kind = one.kind or "number"
            raise Refused(verdict, f"{where} is a {kind}, no torch.Tensor")
        if list(one.shape) != place["shape"]:
            why = f"{where} is {list(one.shape)}, declared {place['shape']}"
            raise Refused(INCORRECT_SHAPE, why)
        if one.dtype != place["dtype"]:
            why = f"{where} is {one.dtype}, declared {place['dtype']}"
            raise Refused(INCORRECT_DTYPE, why)
        if one.layout != "torch.strided" or one.device != device:
            why = f"{where} is {one.layout} on {one.device}, not on {device}"
            raise Refused(REWARD_HACK, why)
        if one.aliases:
            raise Refused(REWARD_HACK, f"{where} shares its memory with an input")
