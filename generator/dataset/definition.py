"""Definitions: one JSON file of definitions/ as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

NamedShapes = frozenset[tuple[str, tuple[str, ...] | None]]
Shapes = tuple[NamedShapes, NamedShapes, frozenset[str]]
"""The shapes of inputs and of outputs by name, and the constant axes among theirs."""


@dataclass(frozen=True, slots=True)
class LoadedAxis:
    """One dimension: a constant has a value, a variable has none."""

    name: str
    value: int | None
    description: str = ""


@dataclass(frozen=True, slots=True)
class LoadedTensor:
    """One input or output as a definition declares it.

    `shape` names axes; None is a Python scalar, () a 0-d tensor. `domain` says where the
    values of an input lie that a workload leaves to chance; empty where any will do.
    """

    name: str
    shape: tuple[str, ...] | None
    dtype: str
    description: str = ""
    optional: bool = False
    domain: str = ""

    @property
    def declared(self) -> str:
        """Return dtype and axes in words: `bfloat16[M, N]`, `float32 scalar`."""
        axes = " scalar" if self.shape is None else f"[{', '.join(self.shape)}]"
        return f"{self.dtype}{axes}"


def declarations(tensors: Mapping[str, LoadedTensor]) -> dict[str, str]:
    """Return name → `bfloat16[M, N]`, or the dtype alone of a scalar, in order."""
    return {
        name: tensor.dtype if tensor.shape is None else tensor.declared
        for name, tensor in tensors.items()
    }


@dataclass(frozen=True)
class LoadedDefinition:
    """One definition; none of its code has been executed.

    `path` is relative to the dataset's root, with forward slashes; `sha256` is the
    digest of the file's bytes. The order of `inputs` is that of `run()`'s parameters.
    """

    name: str
    op_type: str
    path: str
    sha256: str
    axes: Mapping[str, LoadedAxis]
    inputs: Mapping[str, LoadedTensor]
    outputs: Mapping[str, LoadedTensor]
    reference: str
    tags: tuple[str, ...] = ()
    description: str = ""
    constraints: tuple[str, ...] = ()

    @cached_property
    def const_axes(self) -> dict[str, int]:
        """Return the constant axes with their values, in the file's order."""
        return {n: a.value for n, a in self.axes.items() if a.value is not None}

    @cached_property
    def var_axes(self) -> tuple[str, ...]:
        """Return the names of the variable axes, in the file's order."""
        return tuple(n for n, a in self.axes.items() if a.value is None)

    @cached_property
    def text(self) -> str:
        """The reference without the constants at its top, in which definitions differ."""
        lines = self.reference.splitlines()
        return "\n".join(line for line in lines if not line[:1].isupper())

    @cached_property
    def shapes(self) -> Shapes:
        """Return what an op's functions read of it: the shapes, and which axes are constant."""
        groups = (self.inputs, self.outputs)
        inputs, outputs = (
            frozenset((n, t.shape) for n, t in g.items()) for g in groups
        )
        used = {axis for _, shape in (*inputs, *outputs) for axis in shape or ()}
        return inputs, outputs, frozenset(used & self.const_axes.keys())

    def tag_values(self, key: str) -> tuple[str, ...]:
        """Return the values of the tags `key:value`, in the file's order."""
        prefix = f"{key}:"
        return tuple(t[len(prefix) :] for t in self.tags if t.startswith(prefix))


def build_definition(
    value: Mapping[str, Any], path: str, sha256: str
) -> LoadedDefinition:
    """Return a definition from its JSON value, which must fit the schema.

    `path` is relative to the dataset's root, `sha256` the digest of the file's bytes.
    """
    return LoadedDefinition(
        name=value["name"],
        op_type=value["op_type"],
        path=path,
        sha256=sha256,
        axes={
            name: LoadedAxis(name, axis.get("value"), axis.get("description") or "")
            for name, axis in value["axes"].items()
        },
        inputs=_tensors(value["inputs"]),
        outputs=_tensors(value["outputs"]),
        reference=value["reference"],
        tags=tuple(value.get("tags", ())),
        description=value.get("description") or "",
        constraints=tuple(value.get("constraints", ())),
    )


def _tensors(value: Mapping[str, Any]) -> dict[str, LoadedTensor]:
    return {
        name: LoadedTensor(
            name=name,
            shape=None if tensor["shape"] is None else tuple(tensor["shape"]),
            dtype=tensor["dtype"],
            description=tensor.get("description") or "",
            optional=tensor.get("optional", False),
            domain=tensor.get("domain", ""),
        )
        for name, tensor in value.items()
    }
