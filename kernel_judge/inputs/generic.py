"""Cases and inputs for an op_type that has no module of its own.

They show what can be shown without knowing the op: that `run()` takes its inputs, and
returns the declared shapes and dtypes, the same ones twice. Values are compared where
FlashInfer's function can be matched by name: see `automatch`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.memory import dtype_of, shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip

_OFFSET = re.compile(r"\s*(\w+)\s*==\s*(\w+)\s*(?:([+-])\s*(\d+))?\s*")
_END = re.compile(
    r"\s*(?P<axis>\w+)\s*==\s*(?P<name>\w+)\[-1\](\.item\(\))?\s*"
    r"|\s*(?P<name2>\w+)\[-1\](\.item\(\))?\s*==\s*(?P<axis2>\w+)\s*"
)
_LENGTH = re.compile(r"(^|_)(len|lens|length|lengths|seqlen|seqlens|count|counts)(_|$)")


def cases(definition: Definition) -> list[Case]:
    """Return one small case: variable axes of distinct lengths, constraints solved."""
    return [case_of(definition, "generic", "small", 2)]


def case_of(definition: Definition, name: str, size: str, shortest: int) -> Case:
    """Return a case whose variable axes have lengths from `shortest` on."""
    specs = (
        *definition.interface.input_specs.values(),
        *definition.interface.output_specs.values(),
    )
    names = dict.fromkeys(axis for spec in specs for axis in spec.shape or ())
    free = [name for name in names if name not in definition.axes]
    axes = {axis: shortest + position for position, axis in enumerate(free)}
    known = {**definition.axes, **axes}
    for constraint in definition.interface.constraints:
        match = _OFFSET.fullmatch(constraint)
        if match is None:
            continue
        left, right, sign, amount = match.groups()
        value = known.get(right, int(right) if right.isdigit() else None)
        if left in axes and value is not None:
            axes[left] = value + int(f"{sign or '+'}{amount or 0}")
            known[left] = axes[left]
    specs_of = definition.interface.input_specs
    for ends, axis in _ends(definition).items():
        spec = specs_of.get(ends)
        if axis in axes and spec is not None and spec.shape:
            # sequences of three on average
            axes[axis] = 3 * max(known[spec.shape[0]] - 1, 1)
    return Case(name, size, axes)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return inputs that the schema allows, so far as names and constraints tell.

    Floats are bell-shaped, scales positive, scalars 1. Integers are valid indices into
    any input, for they are below every leading axis; lengths are at least 1; an indptr
    rises from 0 to what a constraint says.
    """
    axes = {**definition.axes, **case.axes}
    inputs: dict[str, Any] = {}
    for name, spec in definition.interface.input_specs.items():
        floating = spec.dtype.startswith(("float", "bfloat"))
        if spec.shape is None:
            inputs[name] = 1.0 if floating else 1
            continue
        shape, dtype = shape_of(spec, axes), dtype_of(spec.dtype)
        if spec.dtype == "float4_e2m1":
            reason = f"generic inputs: no packed {spec.dtype} without an op module"
            skip(Kind.UNRESOLVED, reason)
        draws = stream.child(name)
        if floating and "scale" in name:
            inputs[name] = (draws.values(shape).abs() + 0.5).to(dtype)
        elif floating:
            inputs[name] = draws.values(shape, dtype=dtype)
        elif spec.dtype == "bool":
            inputs[name] = _mask(shape, draws)
        elif name.endswith("indptr") and len(shape) == 1:
            inputs[name] = _indptr(shape[0], _end(definition, name, axes)).to(dtype)
        else:
            low = 1 if _LENGTH.search(name) else 0
            high = _below_every_axis(definition, axes) + low
            values = draws.integer_tensor(low, high, math.prod(shape))
            inputs[name] = values.reshape(shape).to(dtype)
    return inputs


def _below_every_axis(definition: Definition, axes: Mapping[str, int]) -> int:
    """Return the least leading axis of an input: an index below it is never outside."""
    specs = definition.interface.input_specs.values()
    leading = [axes[spec.shape[0]] for spec in specs if spec.shape]
    return max(1, min(leading, default=1))


def _mask(shape: Sequence[int], draws: Stream) -> torch.Tensor:
    """Return booleans of which the first of each row is True: no row masks all."""
    mask = draws.integer_tensor(0, 2, math.prod(shape)).reshape(shape).bool()
    if mask.ndim and mask.shape[-1]:
        mask[..., 0] = True
    return mask


def _ends(definition: Definition) -> dict[str, str]:
    """Return indptr → axis, of constraints such as `total == indptr[-1].item()`."""
    ends = {}
    for constraint in definition.interface.constraints:
        match = _END.fullmatch(constraint)
        if match is not None:
            ends[match["name"] or match["name2"]] = match["axis"] or match["axis2"]
    return ends


def _end(definition: Definition, name: str, axes: Mapping[str, int]) -> int | None:
    axis = _ends(definition).get(name)
    return axes.get(axis) if axis is not None else None


def _indptr(length: int, end: int | None) -> torch.Tensor:
    """Return int64 [length] rising from 0 to `end`, by 1 at least where that fits.

    The later steps are the longer ones; without an end every step is 1.
    """
    steps = max(length - 1, 1)
    end = length - 1 if end is None else end
    every = 1 if end >= steps else 0
    rest = end - every * steps
    offsets = [every * i + rest * i * i // (steps * steps) for i in range(length)]
    return torch.tensor(offsets, dtype=torch.int64)
