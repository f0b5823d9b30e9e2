"""The work of latent attention over pages: the compressed keys are values as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.attention.work import keys_read, paged_lengths, pairs, products
from generator.ops.work import Work, sizes_of, written
from kernel_judge.definition import Definition

_INPUTS = ("q_nope", "q_pe", "kv_indptr", "kv_indices", "kv_last_page_len", "qo_indptr")


def work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return operations of the pairs that count, and the bytes of pages in use."""
    latent, rope = inputs["ckv_cache"], inputs["kpe_cache"]
    page = axes.get("page_size", 1)
    decodes = "qo_indptr" not in inputs
    queries, keys = paged_lengths(inputs, page)
    mask = inputs.get("custom_mask")
    if isinstance(mask, torch.Tensor):
        count = int(mask.sum())
    else:
        count = pairs(queries, keys, not decodes)
    used = len(torch.unique(inputs["kv_indices"])) * page
    rows = min(keys_read(queries, keys), used)
    c, p = latent.shape[-1], rope.shape[-1]
    read = sizes_of(inputs, _INPUTS)
    read += rows * (c * latent.dtype.itemsize + p * rope.dtype.itemsize)
    flops = products(count, inputs["q_nope"].shape[1], c + p, c)
    dtype = definition.interface.input_specs["ckv_cache"].dtype
    return Work(read, written(definition, axes, inputs), {dtype: flops})
