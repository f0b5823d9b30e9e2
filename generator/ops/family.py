"""A definition as the families write it down, its JSON text, and all of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.ops.reference_text import ReferenceText
from generator.ops.registry import op_packages, op_specs, optional_op_module
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure


@dataclass(frozen=True)
class Axis:
    """One dimension: a constant has a value, a variable has none."""

    description: str
    value: int | None = None


@dataclass(frozen=True)
class Tensor:
    """One input or output; a shape of None is a Python scalar.

    An optional input may be None, and workloads may leave it out.
    """

    shape: tuple[str, ...] | None
    dtype: str
    description: str
    optional: bool = False


def captured_axes(
    spec: Spec, captured: CapturedWorkload, rng: random.Random
) -> Structure:
    """Return the axes as they were captured: all tensors are random."""
    return Structure(captured.axes)


def any_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return True: a workload needs no more than its random tensors."""
    return True


def no_traffic(spec: Spec) -> Iterable[CapturedWorkload]:
    """Return no steps beside those captured."""
    return ()


@dataclass(frozen=True)
class Spec:
    """One definition and what its workloads are made of.

    `captured_from` names the definition whose captured workloads give the axes; the
    definition's own name where it was captured itself. `captured_op_type` is its
    op_type where that is another one, and `kept_axes` are the captured axes that
    matter, all where it is None. `traffic` makes workloads beside the captured ones, of a
    server under load. `fits` says which workloads can be used, and
    `structure` makes one's axes, structural tensors and scalars. `sm_scale` is the
    value of the input `sm_scale`, or `scale`, in derived workloads, `scalars` those of
    other inputs.
    """

    name: str
    description: str
    op_type: str
    tags: tuple[str, ...]
    axes: Mapping[str, Axis]
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    reference: str | ReferenceText
    captured_from: str
    constraints: tuple[str, ...] = ()
    sm_scale: float | None = None
    captured_op_type: str | None = None
    scalars: Mapping[str, float] = field(default_factory=dict)
    kept_axes: tuple[str, ...] | None = None
    structure: Callable[[Spec, CapturedWorkload, random.Random], Structure] = (
        captured_axes
    )
    fits: Callable[[Spec, CapturedWorkload], bool] = any_fits
    traffic: Callable[[Spec], Iterable[CapturedWorkload]] = no_traffic

    def const(self, axis: str) -> int:
        """Return the value of a constant axis."""
        value = self.axes[axis].value
        if value is None:
            raise ValueError(f"{self.name}: axis {axis} is not a constant")
        return value


def every_spec() -> tuple[Spec, ...]:
    """Return the definitions of all families, by op_type; an op_type may have none."""
    families = (optional_op_module(op_type, "family") for op_type in op_packages())
    return tuple(spec for family in families if family for spec in family.specs())


def definition_json(spec: Spec) -> str:
    """Return the text of the definition's file."""
    domain_of = op_specs()[spec.op_type].domain_of
    document = {
        "name": spec.name,
        "description": spec.description,
        "op_type": spec.op_type,
        "tags": list(spec.tags),
        "axes": {name: _axis(axis) for name, axis in spec.axes.items()},
        "inputs": {
            name: _tensor(tensor, domain_of(spec.name, name, tensor.dtype))
            for name, tensor in spec.inputs.items()
        },
        "outputs": {name: _tensor(tensor) for name, tensor in spec.outputs.items()},
        "constraints": list(spec.constraints),
        "reference": str(spec.reference),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _axis(axis: Axis) -> dict[str, Any]:
    if axis.value is None:
        return {"type": "var", "description": axis.description}
    return {"type": "const", "value": axis.value, "description": axis.description}


def _tensor(tensor: Tensor, domain: str | None = None) -> dict[str, Any]:
    shape = None if tensor.shape is None else list(tensor.shape)
    return {
        "shape": shape,
        "dtype": tensor.dtype,
        "description": tensor.description,
        **({"optional": True} if tensor.optional else {}),
        **({"domain": domain} if domain else {}),
    }
