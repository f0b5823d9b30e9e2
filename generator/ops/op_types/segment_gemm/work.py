"""The work of products of segments with a weight each: the weights that are named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.work import Work, sizes_of, written
from kernel_judge.definition import Definition


def work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return the operations of all rows, and the bytes of weights of rows that exist."""
    counts, which = inputs["seg_indptr"].diff(), inputs["weight_indices"]
    weights = inputs["weights"]
    one = weights[0].numel() * weights.dtype.itemsize
    used = len(torch.unique(which[counts > 0])) * one
    read = sizes_of(inputs, ("x", "seg_indptr", "weight_indices")) + used
    flops = 2 * int(counts.sum()) * weights.shape[1] * weights.shape[2]
    dtype = definition.interface.input_specs["x"].dtype
    return Work(read, written(definition, axes, inputs), {dtype: flops})
