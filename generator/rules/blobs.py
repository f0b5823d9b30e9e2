"""Blobs: a workload's path leads to a tensor of the right name, shape and dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from generator.dataset.blobs import Blobs
from generator.dataset.definition import LoadedDefinition, LoadedTensor
from generator.dataset.tensors import TensorFile
from generator.problems import Problem, Rule, error, note
from generator.problems.messages import did_you_mean, quote
from generator.rules.constraints import names_in
from generator.rules.structure import has_role
from kernel_judge.constraints import TensorValue

WORKLOAD_SIZE = error("""workload-size: An input would take more memory than any machine
    has.
    Fix: Correct the workload's axes.
    Finds: `"axes": {"M": 9000000000000}`""")
BLOB_KEY = error("""blob-key: A workload names a tensor that its blob does not have.
    Fix: Correct tensor_key, or write the tensor into the blob.
    Finds: `"tensor_key": "indptr"` where the blob has only kv_indptr""")
BLOB_SHAPE = error("""blob-shape: A blob's tensor has another shape than the definition
    and the axes say.
    Fix: Correct the workload's axes, or write the right tensor.
    Finds: kv_indptr has 8 elements where len_indptr is 9""")
BLOB_DTYPE = error("""blob-dtype: A blob's tensor has another dtype than the definition
    says.
    Fix: Write the tensor with the definition's dtype.
    Finds: kv_indptr is I64 where the definition says int32""")
BLOB_UNREAD = note("""blob-unread: A tensor is too large for its values to be looked at.
    Fix: Nothing, if the tensor has to be that large.
    Finds: kv_indices of 100 MiB""")

MAX_INPUT_BYTES = 1 << 44
"""16 TiB: no input is that large."""

_DTYPES: Mapping[str, tuple[str, int]] = {
    "float32": ("F32", 32),
    "float16": ("F16", 16),
    "bfloat16": ("BF16", 16),
    "float8_e4m3fn": ("F8_E4M3", 8),
    "float8_e5m2": ("F8_E5M2", 8),
    "float4_e2m1": ("F4", 4),
    "int64": ("I64", 64),
    "int32": ("I32", 32),
    "int16": ("I16", 16),
    "int8": ("I8", 8),
    "uint8": ("U8", 8),
    "bool": ("BOOL", 8),
}
"""Our dtype → that of safetensors, and its bits."""


def check_blobs(
    inputs: Mapping[str, Mapping[str, Any]],
    definition: LoadedDefinition | None,
    axes: Mapping[str, int],
    blobs: Blobs,
    values: dict[str, Any],
) -> Iterator[Problem]:
    """Yield the Problems of a workload's inputs; put the value of each into `values`.

    `axes` has every axis of the definition, or is empty where the workload lacks some;
    then only the blobs themselves are checked.
    """
    for name, source in inputs.items():
        tensor = definition.inputs.get(name) if definition is not None else None
        shape = _shape(tensor, axes)
        if tensor is not None and shape is not None:
            size = math.prod(shape) * _DTYPES[tensor.dtype][1] // 8
            if size > MAX_INPUT_BYTES:
                # a number of thousands of digits can't be shown
                least = min(size, 1 << 80) >> 40
                message = f"The input {quote(name)} would take {least:,} TiB or more."
                yield WORKLOAD_SIZE.at(message, "workload", "axes")
        if source["type"] == "scalar":
            values[name] = source["value"]
            continue
        if shape is not None:
            values[name] = TensorValue(shape)
        if source["type"] != "safetensors":
            continue
        where = ("workload", "inputs", name, "path")
        path, key = source["path"], source["tensor_key"]
        opened = blobs.open(path)
        if not isinstance(opened, TensorFile):
            rule, what = opened
            yield rule.at(f"The blob {quote(path, 200)} {what}.", *where)
        elif defect := _defect(opened, key, tensor, shape):
            rule, what = defect
            yield rule.at(f"In the blob {quote(path, 200)} {what}", *where)
        elif shape is not None and definition and _wanted(definition.constraints, name):
            numbers = opened.integers(key)
            if numbers is None:
                message = f"The values of {quote(name)} are not looked at."
                yield BLOB_UNREAD.at(message, *where)
            values[name] = TensorValue(shape, numbers)


def _shape(
    tensor: LoadedTensor | None, axes: Mapping[str, int]
) -> tuple[int, ...] | None:
    """Return the sizes of an input, None of a scalar or where an axis has no size."""
    if tensor is None or tensor.shape is None:
        return None
    try:
        return tuple([axes[axis] for axis in tensor.shape])
    except KeyError:
        return None


def _defect(
    opened: TensorFile,
    key: str,
    tensor: LoadedTensor | None,
    shape: tuple[int, ...] | None,
) -> tuple[Rule, str] | None:
    entry = opened.tensors.get(key)
    if entry is None:
        guess = did_you_mean(key, opened.tensors)
        return BLOB_KEY, f"there is no tensor {quote(key)}.{guess}"
    if tensor is None or tensor.shape is None:
        return None
    packed = tensor.dtype == "float4_e2m1" and entry.dtype in ("U8", "I8")
    if entry.dtype != _DTYPES[tensor.dtype][0] and not packed:
        types = f"{entry.dtype}, the input is {tensor.dtype}"
        return BLOB_DTYPE, f"the tensor {quote(key)} is {types}."
    stored = (*shape[:-1], shape[-1] // 2) if shape and packed else shape
    if stored is not None and entry.shape != stored:
        sizes = f"{list(entry.shape)}, the axes say {list(shape or ())}"
        return BLOB_SHAPE, f"the tensor {quote(key)} is {sizes}."
    return None


@lru_cache(maxsize=4096)
def _wanted(constraints: tuple[str, ...], name: str) -> bool:
    """Return whether some rule looks at the values of an input."""
    return has_role(name) or any(name in names_in(c) for c in constraints)
