"""Blobs: a workload's path leads to a tensor of the right name, shape and dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from generator.dataset.blobs import Blobs
from generator.dataset.constraints import TensorValue
from generator.dataset.definition import Definition, Tensor
from generator.dataset.tensors import TensorEntry, TensorFile
from generator.problems import Problem
from generator.problems.messages import did_you_mean, quote
from generator.problems.pointer import pointer
from generator.problems.rule import Rule, error, note
from generator.rules.constraints import names_in
from generator.rules.structure import has_role

WORKLOAD_SIZE = error(
    "workload-size",
    "An input would take more memory than any machine has.",
    "Correct the workload's axes.",
    '`"axes": {"M": 9000000000000}`',
)
BLOB_KEY = error(
    "blob-key",
    "A workload names a tensor that its blob does not have.",
    "Correct tensor_key, or write the tensor into the blob.",
    '`"tensor_key": "indptr"` where the blob has only kv_indptr',
)
BLOB_SHAPE = error(
    "blob-shape",
    "A blob's tensor has another shape than the definition and the axes say.",
    "Correct the workload's axes, or write the right tensor.",
    "kv_indptr has 8 elements where len_indptr is 9",
)
BLOB_DTYPE = error(
    "blob-dtype",
    "A blob's tensor has another dtype than the definition says.",
    "Write the tensor with the definition's dtype.",
    "kv_indptr is I64 where the definition says int32",
)
BLOB_UNREAD = note(
    "blob-unread",
    "A tensor is too large for its values to be looked at.",
    "Nothing, if the tensor has to be that large.",
    "kv_indices of 100 MiB",
)


MAX_INPUT_BYTES = 1 << 44
"""16 TiB: no input is that large."""

_BITS: Mapping[str, int] = {"float4_e2m1": 4, "int64": 64, "float32": 32, "int32": 32}
_DTYPES: Mapping[str, str] = {
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float4_e2m1": "F4",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
_PACKED = frozenset(("U8", "I8"))


def check_blobs(
    line: Mapping[str, Any],
    definition: Definition | None,
    axes: Mapping[str, int] | None,
    blobs: Blobs,
    values: dict[str, Any],
    file: str,
    number: int,
) -> Iterator[Problem]:
    """Yield the Problems of the inputs; put the value of each into `values`.

    `axes` has every axis of the definition, or is None where the workload lacks some;
    then only the blobs themselves are checked.
    """
    for name, source in line["workload"]["inputs"].items():
        tensor = definition.inputs.get(name) if definition is not None else None
        shape = _shape(tensor, axes)
        if shape is not None and tensor is not None:
            size = math.prod(shape) * _BITS.get(tensor.dtype, 16) // 8
            if size > MAX_INPUT_BYTES:
                message = f"The input {quote(name)} would take {size >> 40:,} TiB."
                where = pointer(("workload", "axes"))
                yield WORKLOAD_SIZE.problem(file, message, pointer=where, line=number)
        if source["type"] == "scalar":
            values[name] = source["value"]
            continue
        if shape is not None:
            values[name] = TensorValue(shape)
        if source["type"] != "safetensors":
            continue
        opened = blobs.open(source["path"])
        if not isinstance(opened, TensorFile):
            rule, what = opened
            where = pointer(("workload", "inputs", name, "path"))
            message = f"The blob {quote(source['path'], 200)} {what}."
            yield rule.problem(file, message, pointer=where, line=number)
            continue
        for rule, what in _judge(opened, source["tensor_key"], tensor, shape):
            where = pointer(("workload", "inputs", name, "path"))
            message = f"In the blob {quote(source['path'], 200)} {what}"
            yield rule.problem(file, message, pointer=where, line=number)
            break
        else:
            if (
                shape is not None
                and definition is not None
                and _wanted(definition.constraints, name)
            ):
                found = _values(opened, source["tensor_key"])
                if found is None:
                    where = pointer(("workload", "inputs", name, "path"))
                    message = f"The values of {quote(name)} are not looked at."
                    yield BLOB_UNREAD.problem(file, message, pointer=where, line=number)
                values[name] = TensorValue(shape, found)


def _shape(
    tensor: Tensor | None, axes: Mapping[str, int] | None
) -> tuple[int, ...] | None:
    if tensor is None or axes is None or tensor.shape is None:
        return None
    if any(axis not in axes for axis in tensor.shape):
        return None
    return tuple(axes[axis] for axis in tensor.shape)


def _judge(
    opened: TensorFile,
    key: str,
    tensor: Tensor | None,
    shape: tuple[int, ...] | None,
) -> Iterator[tuple[Rule, str]]:
    entry = opened.tensors.get(key)
    if entry is None:
        guess = did_you_mean(key, opened.tensors)
        yield BLOB_KEY, f"there is no tensor {quote(key)}.{guess}"
        return
    if tensor is None or tensor.shape is None:
        return
    shown = quote(key)
    packed = tensor.dtype == "float4_e2m1" and entry.dtype in _PACKED
    if entry.dtype != _DTYPES[tensor.dtype] and not packed:
        what = f"the tensor {shown} is {entry.dtype}, the input is {tensor.dtype}."
        yield BLOB_DTYPE, what
    elif shape is not None and entry.shape != _stored(shape, packed):
        what = f"the tensor {shown} is {_sizes(entry)}, the axes say {list(shape)}."
        yield BLOB_SHAPE, what


def _stored(shape: tuple[int, ...], packed: bool) -> tuple[int, ...]:
    return (*shape[:-1], shape[-1] // 2) if packed and shape else shape


def _sizes(entry: TensorEntry) -> str:
    return str(list(entry.shape))


def _values(opened: TensorFile, key: str) -> Any:
    try:
        return opened.integers(key)
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _wanted(constraints: tuple[str, ...], name: str) -> bool:
    """Return whether some rule looks at the values of an input."""
    return has_role(name) or any(name in names_in(c) for c in constraints)
