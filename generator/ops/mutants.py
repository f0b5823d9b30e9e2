"""Domain mutants: a run() with changed inputs or changed outputs.

A mutant wraps `run()` and never reads its source, so the same defect applies to every
reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch

from kernel_judge.definition import Definition
from kernel_judge.inputs.trial import as_tuple

Run = Callable[..., Any]
Inputs = Mapping[str, Any]
Outputs = tuple[Any, ...]
Change = Callable[[Inputs], Mapping[str, Any]]


@dataclass(frozen=True)
class DomainMutant:
    """A defect, and the wrapper that adds it to a run().

    `wrap` takes the definition's run(), which takes its inputs positionally. Wrap once
    for all cases: mutants that return stale outputs keep state between calls. `as_kernel`
    says where a production kernel does the very same: a reference may not, a solution may.
    """

    name: str
    wrap: Callable[[Run], Run]
    as_kernel: str = ""


@dataclass(frozen=True)
class MutantGroup:
    """Bind mutants to the definitions that they apply to.

    `needs` lists the inputs, outputs, axes and constants that the mutants read. The
    group does not apply to a definition that lacks one of them.
    """

    mutants: Callable[[Definition], tuple[DomainMutant, ...]]
    needs: str

    def has(self, definition: Definition) -> bool:
        """Return whether the group applies to a definition."""
        interface = definition.interface
        known = {*interface.inputs, *interface.outputs}
        known |= {*definition.axes, *definition.constants}
        return known.issuperset(self.needs.split())


def calling(
    definition: Definition, name: str, call: Callable[[Run, dict[str, Any]], Any]
) -> DomainMutant:
    """Return a mutant that returns `call(run, inputs by name)`."""
    names = list(definition.interface.inputs)

    def wrap(run: Run) -> Run:
        # keep run()'s signature, so that test_contract does not kill every mutant
        @wraps(run)
        def wrong(*values: Any) -> Any:
            return call(run, dict(zip(names, values, strict=True)))

        return wrong

    return DomainMutant(name, wrap)


def on_inputs(definition: Definition, name: str, change: Change) -> DomainMutant:
    """Return a mutant that replaces the inputs that `change` returns."""
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
    """Return a mutant that changes the outputs; `change` also gets the inputs."""

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        return changed(run(*inputs.values()), lambda outputs: change(outputs, inputs))

    return calling(definition, name, call)


def computed(
    definition: Definition,
    name: str,
    formula: Callable[[Inputs], Any],
    place: int = 0,
) -> DomainMutant:
    """Return a mutant of which a formula computes outputs, from that at `place` on.

    It returns one tensor or several, which become the outputs' dtypes.
    """

    def change(outputs: Outputs, inputs: Inputs) -> Outputs:
        wrong = as_tuple(formula(inputs))
        end = place + len(wrong)
        pairs = zip(wrong, outputs[place:end], strict=True)
        rounded = (value.to(output.dtype) for value, output in pairs)
        return (*outputs[:place], *rounded, *outputs[end:])

    return on_outputs(definition, name, change)


def changed(returned: Any, change: Callable[[Outputs], Outputs]) -> Any:
    """Apply `change` to the value that run() returned; a single value stays single."""
    if isinstance(returned, (tuple, list)):
        return tuple(change(tuple(returned)))
    (only,) = change((returned,))
    return only


def with_output(outputs: Outputs, place: int, value: Any) -> Outputs:
    """Return the outputs with one replaced."""
    return (*outputs[:place], value, *outputs[place + 1 :])


def shifted(tensor: torch.Tensor, axis: int, by: int = 1) -> torch.Tensor:
    """Roll a tensor along an axis; unlike roll(), works for float8 too."""
    order = torch.arange(tensor.shape[axis], device=tensor.device).roll(by)
    return taken(tensor, axis, order)


def taken(tensor: torch.Tensor, axis: int, order: torch.Tensor) -> torch.Tensor:
    """Return the slices `order`, int64, of a tensor along an axis; any dtype."""
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1:
        return tensor.view(torch.uint8).index_select(axis, order).view(tensor.dtype)
    return tensor.index_select(axis, order)


def zeroed(tensor: torch.Tensor, axis: int, index: int) -> torch.Tensor:
    """Return a copy with one slice along an axis set to zero; any dtype."""
    spoilt = tensor.clone()
    if spoilt.shape[axis]:
        # zero_() does not take float8, whose 0 has all bits 0
        part = spoilt.select(axis, index)
        (part.view(torch.uint8) if part.dtype.itemsize == 1 else part).zero_()
    return spoilt


def truncated(x: torch.Tensor) -> torch.Tensor:
    """Return float32 values with the 16 bits that bfloat16 lacks cut off."""
    return (x.contiguous().view(torch.int32) & -65536).view(torch.float32)


def misread_as_e5m2(codes: torch.Tensor) -> torch.Tensor:
    """Return float8_e4m3fn values nearest to what the bits are in float8_e5m2."""
    wide = codes.view(torch.uint8).view(torch.float8_e5m2).float()
    return wide.nan_to_num().clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
