"""The inputs of prefill on decode, and the two calls that they are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from generator.ops.attention.cases import scale_of
from generator.ops.paging import SPARE_PAGES, cache, page_counts, page_table
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

PREFILL = ("q_p", "k_p", "v_p")
DECODE = (
    *("q_d", "k_cache", "v_cache"),
    *("kv_indptr", "kv_indices", "kv_last_page_len"),
)


def pod_axes(
    q_len: int, kv_len: int, kv_lens: Sequence[int], page_size: int
) -> dict[str, int]:
    """Return the variable axes: of the prefill, and of decodes of `kv_lens` keys."""
    pages = sum(page_counts(kv_lens, page_size))
    return {
        "q_len": q_len,
        "kv_len": kv_len,
        "batch_size": len(kv_lens),
        "len_indptr": len(kv_lens) + 1,
        "num_kv_indices": pages,
        "num_pages": pages + SPARE_PAGES,
    }


def pod_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs, with pages in random order and loud stale slots.

    q_p bfloat16 [q_len, num_qo_heads, head_dim], k_p and v_p bfloat16 [kv_len,
    num_kv_heads, head_dim], q_d bfloat16 [batch_size, num_qo_heads, head_dim]; k_cache
    and v_cache bfloat16 [num_pages, page_size, num_kv_heads, head_dim]; the page table
    int32.
    """
    axes = {**definition.axes, **case.axes}
    kv_lens, page_size = case.params["kv_lens"], axes["page_size"]
    table = page_table(kv_lens, page_size, axes["num_pages"], stream)
    dim = axes["head_dim"]
    kv = (axes["num_kv_heads"], dim)
    inputs: dict[str, Any] = {
        "kv_indptr": table.indptr,
        "kv_indices": table.indices,
        "kv_last_page_len": table.last_page_len,
        "sm_scale": scale_of(case, dim),
    }
    for name, rows in (("q_p", "q_len"), ("q_d", "batch_size")):
        shape = (axes[rows], axes["num_qo_heads"], dim)
        std = case.params["q_std"]
        inputs[name] = stream.child(name).values(shape, std, torch.bfloat16)
    for name in ("k_p", "v_p"):
        shape = (axes["kv_len"], *kv)
        inputs[name] = stream.child(name).values(shape, 1.0, torch.bfloat16)
    for name in ("k_cache", "v_cache"):
        pages = (axes["num_pages"], page_size, *kv)
        inputs[name] = cache(pages, table, stream.child(name), torch.bfloat16)
    return {name: inputs[name] for name in definition.interface.inputs}


def last_lengths(inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return kv_last_page_len with 0 for a sequence without a page, int32.

    FlashInfer adds it even there.
    """
    last: torch.Tensor = inputs["kv_last_page_len"]
    return last.where(inputs["kv_indptr"].diff() > 0, 0)
