"""The work of attention over ragged sequences: pairs that count, and all keys seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.attention.work import (
    bytes_of_rows,
    keys_read,
    lengths,
    pairs,
    products,
)
from generator.ops.work import Work, sizes_of, written
from kernel_judge.definition import Definition


def work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return operations of the pairs within mask and window, and the bytes they need."""
    queries, keys = lengths(inputs["qo_indptr"]), lengths(inputs["kv_indptr"])
    causal = not definition.constants.get("noncausal", False)
    window = int(definition.constants.get("window_left", -1))
    count = pairs(queries, keys, causal, window)
    rows = keys_read(queries, keys, window)
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    read = sizes_of(inputs, ("q", "qo_indptr", "kv_indptr", "sinks"))
    read += bytes_of_rows(k, rows, 2) + bytes_of_rows(v, rows, 2)
    flops = products(count, q.shape[1], q.shape[2], v.shape[2])
    dtype = definition.interface.input_specs["k"].dtype
    return Work(read, written(definition, axes, inputs), {dtype: flops})
