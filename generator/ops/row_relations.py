"""Relations along a named axis: reordering or splitting inputs does so to the outputs.

They apply to every tensor that has the axis, wherever it stands in the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from kernel_judge.definition import Interface
from kernel_judge.inputs.trial import Inputs
from kernel_judge.relation import (
    Bound,
    Claim,
    Outputs,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

Bounds = dict[str, Bound]
# length of an axis → the order of its indices, int64 [length]
Order = Callable[[int], torch.Tensor]


def backwards(length: int) -> torch.Tensor:
    """Return the indices in reverse: int64 [length]."""
    return torch.arange(length - 1, -1, -1)


def last_half_twice(length: int) -> torch.Tensor:
    """Return the indices that give the last half to both of two ranks: int64 [length].

    What one rank has in the whole, both have then, and the other rank's has no effect.
    """
    half = max(length // 2, 1)
    return length - half + torch.arange(length) % half


def reordered(
    name: str,
    axes: Sequence[str],
    bounds: Bounds,
    cases: Sequence[RelatedCase],
    order: Order = backwards,
) -> Relation:
    """Return the relation that reordered inputs give equally reordered outputs."""

    def claims(subject: RelatedCalls) -> Iterator[Claim]:
        interface = subject.definition.interface
        inputs = subject.inputs
        for axis in axes:
            inputs = taken(interface, inputs, axis, order)
        actual = subject.run(inputs)
        expected = subject.whole
        for axis in axes:
            expected = taken(interface, expected, axis, order)
        yield from alike(expected, actual, bounds)

    return Relation(name, claims, cases)


def in_two_parts(
    name: str, axis: str, bounds: Bounds, cases: Sequence[RelatedCase]
) -> Relation:
    """Return the relation that calls on two parts of an axis give the whole."""

    def claims(subject: RelatedCalls) -> Iterator[Claim]:
        interface = subject.definition.interface
        length = subject.trial.case.axes[axis]
        cut = (length + 1) // 2
        parts = [
            subject.run(taken(interface, subject.inputs, axis, order))
            for order in (lambda n: torch.arange(cut), lambda n: torch.arange(cut, n))
        ]
        yield from alike(subject.whole, joined(interface, parts, axis), bounds)

    return Relation(name, claims, cases)


def taken(interface: Interface, values: Inputs, axis: str, order: Order) -> Inputs:
    """Return inputs or outputs with every tensor indexed along the named axis."""
    specs = {**interface.input_specs, **interface.output_specs}
    reordered_values = dict(values)
    for name, value in values.items():
        shape = specs[name].shape or ()
        if isinstance(value, torch.Tensor) and axis in shape:
            dim = shape.index(axis)
            reordered_values[name] = select(value, dim, order(value.shape[dim]))
    return reordered_values


def select(value: torch.Tensor, dim: int, places: torch.Tensor) -> torch.Tensor:
    """Index one dimension by `places`, int64; works for every dtype, float8 included.

    The result is contiguous, of the shape of `value` but for len(places) along `dim`.
    """
    index: list[Any] = [slice(None)] * value.dim()
    index[dim] = places
    if value.dtype.itemsize == 1:
        return value.view(torch.uint8)[tuple(index)].contiguous().view(value.dtype)
    return value[tuple(index)].contiguous()


def joined(interface: Interface, parts: Sequence[Outputs], axis: str) -> Outputs:
    """Concatenate the outputs of parts along the named axis; drop those without it."""
    specs = {**interface.input_specs, **interface.output_specs}
    joined: Outputs = {}
    for name in parts[0]:
        shape = specs[name].shape or ()
        if axis in shape:
            values = [part[name] for part in parts]
            joined[name] = torch.cat(values, dim=shape.index(axis))
    return joined
