"""The work of attention over pages: pairs that count, and the keys of pages in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.attention.work import (
    keys_read,
    paged_lengths,
    pairs,
    products,
)
from generator.ops.work import Work, sizes_of, written
from kernel_judge.definition import Definition

_OF_PAGES = ("kv_indptr", "kv_indices", "kv_last_page_len", "qo_indptr")


def work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return operations of the pairs within mask and window, and the bytes they need.

    Pages that several sequences share are read once.
    """
    q, k = inputs["q"], inputs["k_cache"]
    page = axes.get("page_size", 1)
    decodes = "qo_indptr" not in inputs
    queries, keys = paged_lengths(inputs, page)
    window = int(definition.constants.get("window_left", -1))
    mask = inputs.get("custom_mask")
    if isinstance(mask, torch.Tensor):
        count = int(mask.sum())
    else:
        causal = not decodes and not definition.constants.get("noncausal", False)
        count = pairs(queries, keys, causal, window)
    used = len(torch.unique(inputs["kv_indices"])) * page
    rows = min(keys_read(queries, keys, window), used)
    read = sizes_of(inputs, ("q", "sinks", *_OF_PAGES))
    read += 2 * rows * axes["num_kv_heads"] * k.shape[-1] * k.dtype.itemsize
    flops = products(count, q.shape[1], q.shape[2], q.shape[2])
    dtype = definition.interface.input_specs["k_cache"].dtype
    return Work(read, written(definition, axes, inputs), {dtype: flops})
