"""Relations along one axis of an interface: its order, and where it is cut, are free.

They are stated by the axis's name alone: every tensor that has the axis is reordered or
cut, wherever in its shape the axis stands, and so must be what `run()` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from .definition import Definition, Interface
from .relation import Bound, Claim, Outputs, RelatedCase, Relation, Subject, alike
from .trial import Inputs

Bounds = dict[str, Bound]
# from the length of an axis to an order of its places: int64 [length]
Order = Callable[[int], torch.Tensor]


def backwards(length: int) -> torch.Tensor:
    """Return the last place first."""
    return torch.arange(length - 1, -1, -1)


def reordered(
    name: str,
    axes: Sequence[str],
    bounds: Bounds,
    cases: Sequence[RelatedCase],
    order: Order = backwards,
) -> Relation:
    """Return the relation that axes taken in another order reorder the outputs alone."""

    def claims(subject: Subject) -> Iterator[Claim]:
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
    """Return the relation that two calls, each on a part of an axis, give the whole."""

    def claims(subject: Subject) -> Iterator[Claim]:
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
    """Return inputs or outputs with places of an axis taken in an order."""
    specs = {**interface.input_specs, **interface.output_specs}
    found = dict(values)
    for name, value in values.items():
        shape = specs[name].shape or ()
        if isinstance(value, torch.Tensor) and axis in shape:
            dim = shape.index(axis)
            found[name] = select(value, dim, order(value.shape[dim]))
    return found


def select(value: torch.Tensor, dim: int, places: torch.Tensor) -> torch.Tensor:
    """Return places of an axis, contiguous; the index moves bits of any dtype."""
    index: list[Any] = [slice(None)] * value.dim()
    index[dim] = places
    if value.dtype.itemsize == 1:
        return value.view(torch.uint8)[tuple(index)].contiguous().view(value.dtype)
    return value[tuple(index)].contiguous()


def joined(interface: Interface, parts: Sequence[Outputs], axis: str) -> Outputs:
    """Return the outputs of parts that follow each other along an axis."""
    specs = {**interface.input_specs, **interface.output_specs}
    found: Outputs = {}
    for name in parts[0]:
        shape = specs[name].shape or ()
        if axis in shape:
            values = [part[name] for part in parts]
            found[name] = torch.cat(values, dim=shape.index(axis))
    return found


def has_axis(definition: Definition, axis: str) -> bool:
    """Return whether an input of the definition has an axis of that name."""
    specs = definition.interface.input_specs.values()
    return any(axis in (spec.shape or ()) for spec in specs)
