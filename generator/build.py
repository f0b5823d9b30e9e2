"""Turn a definition's JSON value, once it fits the schema, into a Definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.definition import Axis, Definition, Tensor


def build_definition(value: Mapping[str, Any], path: str, sha256: str) -> Definition:
    """Return the Definition that a value says; the value must fit the schema."""
    return Definition(
        name=value["name"],
        op_type=value["op_type"],
        path=path,
        sha256=sha256,
        axes={
            name: Axis(name, axis.get("value"), axis.get("description", ""))
            for name, axis in value["axes"].items()
        },
        inputs=_tensors(value["inputs"]),
        outputs=_tensors(value["outputs"]),
        reference=value["reference"],
        tags=tuple(value.get("tags", ())),
        description=value.get("description", ""),
        constraints=tuple(value.get("constraints", ())),
    )


def _tensors(value: Mapping[str, Any]) -> dict[str, Tensor]:
    return {
        name: Tensor(
            name=name,
            shape=None if tensor["shape"] is None else tuple(tensor["shape"]),
            dtype=tensor["dtype"],
            description=tensor.get("description", ""),
            optional=tensor.get("optional", False),
        )
        for name, tensor in value.items()
    }
