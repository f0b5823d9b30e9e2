"""What a domain mutant is: a run() that is called wrongly, or whose outputs are spoilt.

A mutant wraps `run()` and never reads its text, so that it is the same defect whoever
wrote the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch

from generator.support.definition import Definition

Run = Callable[..., Any]
Inputs = Mapping[str, Any]
Outputs = tuple[Any, ...]
Change = Callable[[Inputs], Mapping[str, Any]]


@dataclass(frozen=True)
class DomainMutant:
    """Name a defect and make a run() that has it.

    `wrap` takes the definition's own run(), which gets the inputs positionally. Wrap
    once for all cases: an output left over from the last call needs a last call.
    """

    name: str
    wrap: Callable[[Run], Run]


def calling(
    definition: Definition, name: str, call: Callable[[Run, dict[str, Any]], Any]
) -> DomainMutant:
    """Return a mutant that does with run() and the inputs by name what `call` does."""
    names = list(definition.interface.inputs)

    def wrap(run: Run) -> Run:
        # a mutant has the signature of what it wraps: test_contract is no catch
        @wraps(run)
        def wrong(*given: Any) -> Any:
            return call(run, dict(zip(names, given, strict=True)))

        return wrong

    return DomainMutant(name, wrap)


def on_inputs(definition: Definition, name: str, change: Change) -> DomainMutant:
    """Return a mutant that calls run() with some inputs replaced."""
    return calling(
        definition,
        name,
        lambda run, inputs: run(*{**inputs, **change(inputs)}.values()),
    )


def on_outputs(
    definition: Definition,
    name: str,
    change: Callable[[Outputs, Inputs], Outputs],
) -> DomainMutant:
    """Return a mutant that changes what run() returns, knowing the inputs."""

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        return changed(run(*inputs.values()), lambda outputs: change(outputs, inputs))

    return calling(definition, name, call)


def changed(returned: Any, change: Callable[[Outputs], Outputs]) -> Any:
    """Return what run() returned with its outputs changed: one value stays one."""
    if isinstance(returned, (tuple, list)):
        return tuple(change(tuple(returned)))
    (only,) = change((returned,))
    return only


def with_output(outputs: Outputs, place: int, value: Any) -> Outputs:
    """Return the outputs with one of them replaced."""
    return (*outputs[:place], value, *outputs[place + 1 :])


def shifted(tensor: torch.Tensor, axis: int, by: int = 1) -> torch.Tensor:
    """Return a tensor rolled along an axis: also of float8, which roll() refuses."""
    order = torch.arange(tensor.shape[axis], device=tensor.device).roll(by)
    return taken(tensor, axis, order)


def taken(tensor: torch.Tensor, axis: int, order: torch.Tensor) -> torch.Tensor:
    """Return a tensor's slices along an axis in another order."""
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1:
        return tensor.view(torch.uint8).index_select(axis, order).view(tensor.dtype)
    return tensor.index_select(axis, order)


def zeroed(tensor: torch.Tensor, axis: int, index: int) -> torch.Tensor:
    """Return a tensor with one slice along an axis zero."""
    found = tensor.clone()
    if found.shape[axis]:
        # what a float8 of all bits 0 is, too
        part = found.select(axis, index)
        (part.view(torch.uint8) if part.dtype.itemsize == 1 else part).zero_()
    return found
