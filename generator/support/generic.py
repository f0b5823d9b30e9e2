"""Cases and inputs for an op_type that has no module of its own.

They show what can be shown without knowing the op: that `run()` takes its inputs, and
returns the declared shapes and dtypes, the same ones twice. No value is compared.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from .definition import Case, Definition
from .memory import dtype_of, shape_of
from .stream import Stream

_OFFSET = re.compile(r"\s*(\w+)\s*==\s*(\w+)\s*(?:([+-])\s*(\d+))?\s*")


def cases(definition: Definition) -> list[Case]:
    """Return one small case: variable axes of distinct lengths, constraints solved."""
    specs = (
        *definition.interface.input_specs.values(),
        *definition.interface.output_specs.values(),
    )
    names = dict.fromkeys(axis for spec in specs for axis in spec.shape or ())
    free = [name for name in names if name not in definition.axes]
    axes = {name: 2 + position for position, name in enumerate(free)}
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
    return [Case("generic", "small", axes)]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return bell-shaped floats, zeros for integers and booleans, 1.0 for scalars."""
    axes = {**definition.axes, **case.axes}
    inputs: dict[str, Any] = {}
    for name, spec in definition.interface.input_specs.items():
        floating = spec.dtype.startswith(("float", "bfloat"))
        if spec.shape is None:
            inputs[name] = 1.0 if floating else 1
            continue
        shape, dtype = shape_of(spec, axes), dtype_of(spec.dtype)
        if spec.dtype == "float4_e2m1":
            pytest.skip(f"generic inputs: no packed {spec.dtype} without an op module")
        inputs[name] = (
            stream.child(name).values(shape).to(dtype)
            if floating
            else torch.zeros(shape, dtype=dtype)
        )
    return inputs
