"""A definition as the families write it down, and its JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Axis:
    """Describe one dimension: a constant has a value, a variable has none."""

    description: str
    value: int | None = None


@dataclass(frozen=True)
class Tensor:
    """Describe one input or output; a shape of None is a Python scalar.

    An optional input may be None, and workloads may leave it out.
    """

    shape: tuple[str, ...] | None
    dtype: str
    description: str
    optional: bool = False


@dataclass(frozen=True)
class Spec:
    """Hold one definition and where the axes of its workloads come from.

    `captured_from` names the definition whose captured workloads give the axes; the
    definition's own name where it was captured itself. `captured_op_type` is its
    op_type where that is another one. `sm_scale` is the value of the input `sm_scale`,
    or `scale`, in derived workloads, `scalars` those of other inputs.
    """

    name: str
    description: str
    op_type: str
    tags: tuple[str, ...]
    axes: Mapping[str, Axis]
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    reference: str
    captured_from: str
    constraints: tuple[str, ...] = ()
    sm_scale: float | None = None
    captured_op_type: str | None = None
    scalars: Mapping[str, float] = field(default_factory=dict)

    def const(self, axis: str) -> int:
        """Return the value of a constant axis."""
        value = self.axes[axis].value
        if value is None:
            raise ValueError(f"{self.name}: axis {axis} is not a constant")
        return value


def definition_json(spec: Spec) -> str:
    """Return the text of the definition's file."""
    document = {
        "name": spec.name,
        "description": spec.description,
        "op_type": spec.op_type,
        "tags": list(spec.tags),
        "axes": {name: _axis(axis) for name, axis in spec.axes.items()},
        "inputs": {name: _tensor(tensor) for name, tensor in spec.inputs.items()},
        "outputs": {name: _tensor(tensor) for name, tensor in spec.outputs.items()},
        "constraints": list(spec.constraints),
        "reference": spec.reference,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _axis(axis: Axis) -> dict[str, Any]:
    if axis.value is None:
        return {"type": "var", "description": axis.description}
    return {"type": "const", "value": axis.value, "description": axis.description}


def _tensor(tensor: Tensor) -> dict[str, Any]:
    shape = None if tensor.shape is None else list(tensor.shape)
    return {
        "shape": shape,
        "dtype": tensor.dtype,
        "description": tensor.description,
        **({"optional": True} if tensor.optional else {}),
    }
