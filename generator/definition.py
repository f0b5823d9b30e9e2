"""A definition as a value: what one JSON file of definitions/ says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Axis:
    """Name one dimension: a constant has a value, a variable has none."""

    name: str
    value: int | None
    description: str = ""


@dataclass(frozen=True)
class Tensor:
    """Declare one input or output.

    `shape` names axes; None is a Python scalar, () a 0-d tensor.
    """

    name: str
    shape: tuple[str, ...] | None
    dtype: str
    description: str = ""
    optional: bool = False

    @property
    def is_filled(self) -> bool:
        """Return whether it is a buffer that `run` writes to, as its text tells callers."""
        return bool(re.search(r"(?i)\bwritten\b", self.description))


@dataclass(frozen=True)
class Definition:
    """Hold one loaded definition; nothing here has been executed.

    `path` is relative to the dataset's root, with forward slashes; `sha256` is the
    digest of the file's bytes. Order of `inputs` is the order of `run()`'s parameters.
    """

    name: str
    op_type: str
    path: str
    sha256: str
    axes: Mapping[str, Axis]
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
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

    def tag_values(self, key: str) -> tuple[str, ...]:
        """Return the values of the tags `key:value`, in the file's order."""
        prefix = f"{key}:"
        return tuple(t[len(prefix) :] for t in self.tags if t.startswith(prefix))
