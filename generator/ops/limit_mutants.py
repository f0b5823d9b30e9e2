"""Domain mutants of every op: a `run()` that is right only up to a limit.

Kernels have such limits: a block index of 16 bits, a page table of 256 entries, a loop over
1,024 keys. A mutant is right for all that lies within the limit and wrong beyond it, so a
test catches it only where a case crosses the limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from generator.ops.mutants import (
    DomainMutant,
    Inputs,
    Outputs,
    calling,
    changed,
    on_inputs,
    on_outputs,
)
from kernel_judge.definition import Definition, TensorSpec

SEGMENTS = ("indptr", "cu_seqlens")


@dataclass(frozen=True)
class Maxima:
    """The largest sizes that a definition's workloads have.

    `axes` are the lengths of variable axes, `values` the largest value of integer inputs,
    `segments` the longest segment of inputs such as `kv_indptr`, in entries.
    """

    axes: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)
    segments: Mapping[str, int] = field(default_factory=dict)


def limit_mutants(
    definition: Definition, maxima: Maxima, unread: Collection[str] = ()
) -> tuple[DomainMutant, ...]:
    """Return a mutant for each power of two below each maximum, the greatest first.

    Of `unread` inputs, which the reference does not name, there is none: it would be
    equivalent.
    """
    return tuple(
        mutant
        for make, sizes in (
            (partial(_of_axis, unread=unread), maxima.axes),
            (_of_values, maxima.values),
            (_of_segments, maxima.segments),
        )
        for name, largest in sizes.items()
        if name not in unread
        for limit in _powers_below(largest)
        if (mutant := make(definition, name, limit)) is not None
    )


def _powers_below(largest: int) -> Iterator[int]:
    """Yield the powers of two below a size, down to 2."""
    power = (largest - 1).bit_length() - 1
    while power > 0:
        yield 1 << power
        power -= 1


def _of_axis(
    definition: Definition, axis: str, limit: int, unread: Collection[str] = ()
) -> DomainMutant | None:
    """Return the mutant whose outputs are zero beyond a length of an axis.

    Of an axis that no output has the inputs are zero there. None where no tensor has it.
    """
    if axis in definition.axes:
        return None
    interface = definition.interface
    name = f"right for the first {limit} of {axis} alone"
    places = _places(interface.output_specs.values(), axis)
    if places:

        def cut_outputs(outputs: Outputs, inputs: Inputs) -> Outputs:
            return tuple(
                _zero_beyond(output, places[place], limit)
                if place in places
                else output
                for place, output in enumerate(outputs)
            )

        return on_outputs(definition, name, cut_outputs)
    names = list(interface.input_specs)
    inputs_with = {
        names[place]: dims
        for place, dims in _places(interface.input_specs.values(), axis).items()
        if names[place] not in unread
    }
    if not inputs_with:
        return None
    return on_inputs(
        definition,
        name,
        lambda inputs: {
            key: _zero_beyond(inputs[key], dims, limit)
            for key, dims in inputs_with.items()
        },
    )


def _places(specs: Any, axis: str) -> dict[int, list[int]]:
    """Return position of a tensor → its dimensions of this axis."""
    return {
        place: [dim for dim, name in enumerate(spec.shape) if name == axis]
        for place, spec in enumerate(specs)
        if spec.shape and axis in spec.shape
    }


def _zero_beyond(value: Any, dims: Sequence[int], limit: int) -> Any:
    """Return a copy that is zero beyond a length of dimensions; any dtype."""
    if not isinstance(value, torch.Tensor):
        return value
    if all(value.shape[dim] <= limit for dim in dims):
        return value
    copy = value.clone()
    for dim in dims:
        if value.shape[dim] > limit:
            _zero(copy.narrow(dim, limit, value.shape[dim] - limit))
    return copy


def _zero(part: torch.Tensor) -> None:
    # zero_() does not take float8, whose 0 has all bits 0
    (part.view(torch.uint8) if part.dtype.itemsize == 1 else part).zero_()


def _of_values(definition: Definition, name: str, limit: int) -> DomainMutant | None:
    """Return the mutant that takes greater values of an integer input as the limit."""
    spec = definition.interface.input_specs.get(name)
    if spec is None or not _is_integer(spec):
        return None

    def clamped(inputs: Inputs) -> dict[str, Any]:
        value = inputs[name]
        if isinstance(value, torch.Tensor):
            return {name: value.clamp(max=limit)}
        return {} if value is None else {name: min(value, limit)}

    return on_inputs(definition, f"{name} above {limit} taken as {limit}", clamped)


def _is_integer(spec: TensorSpec) -> bool:
    return spec.dtype.startswith(("int", "uint"))


def _of_segments(definition: Definition, name: str, limit: int) -> DomainMutant | None:
    """Return the mutant that ignores what a segment has beyond a number of entries.

    In tensors over the axis that the segments divide floats are zero there, and integers
    those of the segment's first entry; so are outputs over that axis.
    """
    interface = definition.interface
    if not name.endswith(SEGMENTS) or name not in interface.input_specs:
        return None

    def call(run: Any, inputs: dict[str, Any]) -> Any:
        bounds = inputs[name]
        beyond, first = _beyond(bounds, limit)
        if not bool(beyond.any()):
            return run(*inputs.values())
        cut = partial(_cut_segments, beyond=beyond, first=first)
        others = (key for key in inputs if key != name)
        shortened = {**inputs, **{key: cut(inputs[key]) for key in others}}
        return changed(
            run(*shortened.values()), lambda outputs: tuple(map(cut, outputs))
        )

    return calling(definition, f"{name}: the first {limit} of a segment alone", call)


def _beyond(bounds: torch.Tensor, limit: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return for each entry whether its segment ignores it, and its segment's first.

    bool and int64 [bounds[-1]].
    """
    starts = bounds[:-1].long()
    lengths = (bounds[1:].long() - starts).clamp(min=0)
    first = torch.repeat_interleave(starts, lengths)
    entry = torch.arange(len(first), device=bounds.device)
    return entry - first >= limit, first


def _cut_segments(value: Any, beyond: torch.Tensor, first: torch.Tensor) -> Any:
    is_over_axis = isinstance(value, torch.Tensor) and value.shape[:1] == beyond.shape
    if not is_over_axis:
        return value
    copy = value.clone()
    if value.is_floating_point():
        # by bits: float8 takes no masked assignment
        bits = copy.view(torch.uint8).reshape(len(copy), -1)
        bits[beyond] = 0
        return bits.view(value.dtype).reshape(value.shape)
    copy[beyond] = value[first[beyond]]
    return copy
