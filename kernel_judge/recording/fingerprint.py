"""Hashes that a recording depends on: of inputs, and of an interface."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import torch

from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.lazy_weights import Tiled


def input_hashes(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of the bytes of each input, of a scalar that of its repr."""
    return {name: _sha256(value) for name, value in inputs.items()}


def recorded_hashes(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return of the hash of each input what a recording keeps: 32 of its 64 digits."""
    return {name: digits[:32] for name, digits in input_hashes(inputs).items()}


def _sha256(value: Any) -> str:
    if isinstance(value, Tiled):
        # its stream and its shape say all of its bytes, which may be 64 GB
        return of_json([list(value.shape), _sha256(value.base)])
    if not isinstance(value, torch.Tensor):
        return hashlib.sha256(repr(value).encode()).hexdigest()
    flat = value.detach().cpu().contiguous().reshape(-1)
    return hashlib.sha256(flat.view(torch.uint8).numpy().data).hexdigest()


def interface_hash(definition: Definition) -> str:
    """Return the hash of all that a kernel's call depends on but the inputs' values.

    The reference is none of it: a recording outlives the reference that it judges.
    """
    interface = definition.interface
    return of_json(
        [
            definition.name,
            definition.op_type,
            list(interface.inputs.items()),
            list(interface.outputs.items()),
            list(interface.constraints),
            sorted(definition.axes.items()),
            sorted(definition.constants.items()),
        ]
    )


def case_value(case: Case) -> dict[str, Any]:
    """Return a case's size, axes and parameters as plain JSON values."""
    value = {"size": case.size, "axes": dict(case.axes), "params": dict(case.params)}
    plain: dict[str, Any] = json.loads(json.dumps(value, default=str))
    return plain


def of_json(value: object) -> str:
    """Return the SHA-256 of a value as JSON, in hex digits."""
    text = json.dumps(value, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
