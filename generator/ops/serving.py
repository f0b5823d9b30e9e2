"""Whether an op_type's functions fit a definition, judged by its interface alone.

An op's functions read inputs, outputs and axes by name. The definitions of its family
say which interfaces those are; one with another interface is not the op's, whatever its
op_type says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from generator.dataset.definition import LoadedDefinition, Shapes
from generator.ops.registry import op_specs, optional_op_module
from generator.ops.spec import OpSpec

_Shape = tuple[str, ...] | None


@dataclass(frozen=True)
class _Served:
    """The shapes of an interface that an op serves, and its constant axes."""

    inputs: tuple[tuple[str, _Shape], ...]
    outputs: tuple[tuple[str, _Shape], ...]
    constant: frozenset[str]


def why_not_served(definition: LoadedDefinition) -> str | None:
    """Return why an op_type's functions don't fit a definition, None where they do.

    The first difference from the nearest interface of the op_type's family: `moe: axis
    intermediate_size is missing`. An op_type without a family serves any interface.
    """
    if definition.shapes in _exact(definition.op_type):
        return None
    differences = [
        [*_differences(served, definition)] for served in _served(definition.op_type)
    ]
    if not differences:
        return None
    nearest = min(differences, key=len)
    return f"{definition.op_type}: {nearest[0]}" if nearest else None


def spec_of(definition: LoadedDefinition) -> OpSpec | None:
    """Return the OpSpec of the op_type that serves a definition, None without one."""
    spec = op_specs().get(definition.op_type)
    return spec if spec is None or why_not_served(definition) is None else None


@cache
def _served(op_type: str) -> tuple[_Served, ...]:
    family = optional_op_module(op_type, "family")
    interfaces: dict[_Served, None] = {}
    for spec in family.specs() if family is not None else ():
        tensors = (*spec.inputs.values(), *spec.outputs.values())
        axes = {axis for tensor in tensors for axis in tensor.shape or ()}
        constant = (axis for axis in axes if spec.axes[axis].value is not None)
        inputs = tuple((name, tensor.shape) for name, tensor in spec.inputs.items())
        outputs = tuple((name, tensor.shape) for name, tensor in spec.outputs.items())
        interfaces[_Served(inputs, outputs, frozenset(constant))] = None
    return tuple(interfaces)


@cache
def _exact(op_type: str) -> frozenset[Shapes]:
    """Return the interfaces that an op serves, to find an equal one at once."""
    return frozenset(
        (frozenset(one.inputs), frozenset(one.outputs), one.constant)
        for one in _served(op_type)
    )


def _differences(served: _Served, definition: LoadedDefinition) -> Iterator[str]:
    """Yield in words how a definition's interface differs from one that is served."""
    ours = (("input", served.inputs), ("output", served.outputs))
    theirs = (definition.inputs, definition.outputs)
    known = {axis for _, tensors in ours for axis in _axes(s for _, s in tensors)}
    used = {axis for group in theirs for axis in _axes(t.shape for t in group.values())}
    for axis in sorted(known - used):
        yield f"axis {axis} is missing"
    for axis in sorted(used - known):
        yield f"axis {axis} is not one of its axes"
    for axis in sorted(known & used):
        if (axis in definition.const_axes) != (axis in served.constant):
            kinds = ("variable", "constant")
            kind, wanted = kinds if axis in served.constant else reversed(kinds)
            yield f"axis {axis} is {kind}, not {wanted}"
    for (kind, tensors), group in zip(ours, theirs, strict=True):
        yield from _of_tensors(
            kind, dict(tensors), {n: t.shape for n, t in group.items()}
        )


def _of_tensors(
    kind: str, served: Mapping[str, _Shape], has: Mapping[str, _Shape]
) -> Iterator[str]:
    for name in served:
        if name not in has:
            yield f"{kind} {name} is missing"
    for name, shape in has.items():
        if name not in served:
            yield f"{kind} {name} is not one of its {kind}s"
        elif shape != served[name]:
            yield f"{kind} {name} is {_text(shape)}, not {_text(served[name])}"


def _axes(shapes: Iterable[_Shape]) -> Iterator[str]:
    return (axis for shape in shapes for axis in shape or ())


def _text(shape: _Shape) -> str:
    return "a scalar" if shape is None else f"[{', '.join(shape)}]"
