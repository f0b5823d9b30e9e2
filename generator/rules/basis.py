"""Hash of everything that a run of a definition's tests depends on; results have it as key.

That is the name, which states constants; op_type, axes, inputs, outputs, constraints and
the reference's text; and what the tags give to a run: the values that the tagged models'
figures have for the op's constants, and where no op serves the definition the functions
that `fi_api:` tags name. Descriptions, domains and all other tags are none of it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from generator.dataset.definition import (
    LoadedDefinition,
    LoadedTensor,
    build_definition,
)
from generator.dataset.file_reading import read_bytes
from generator.dataset.json_file import json_of
from generator.ops.serving import spec_of
from generator.rules.constants import values_by_tags


def basis_of(definition: LoadedDefinition) -> str:
    """Return the SHA-256 of what a run of a definition's tests depends on."""
    parts = [
        definition.name,
        definition.op_type,
        [[axis.name, axis.value] for axis in definition.axes.values()],
        [_tensor(tensor) for tensor in definition.inputs.values()],
        [_tensor(tensor) for tensor in definition.outputs.values()],
        definition.constraints,
        definition.reference.replace("\r\n", "\n").replace("\r", "\n"),
        from_tags(definition),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def from_tags(definition: LoadedDefinition) -> Any:
    """Return what the tags of a definition give to a run of its tests."""
    spec = spec_of(definition)
    if spec is not None:
        return values_by_tags(definition, spec)
    return definition.tag_values("fi_api")


def basis_in(root: Path, path: str) -> str:
    """Return it of a definition's file, which need not be valid. Raises OSError."""
    return basis_of_bytes(read_bytes(root, path), path)


def basis_of_bytes(data: bytes, path: str) -> str:
    """Return it of the content of a file: of one that is no definition, its SHA-256."""
    try:
        return basis_of(build_definition(json_of(data, path).value, path, ""))
    except (AttributeError, KeyError, TypeError, ValueError):
        return hashlib.sha256(data).hexdigest()


def _tensor(tensor: LoadedTensor) -> list[Any]:
    return [tensor.name, tensor.shape, tensor.dtype, tensor.optional]
