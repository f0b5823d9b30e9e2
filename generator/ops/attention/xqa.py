"""FlashInfer's XQA: a second kernel of paged decode, which returns no LSE."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from generator.ops.attention.caches import is_head_major
from generator.ops.attention.variant import variant_of
from generator.ops.paging import input_table, kv_lengths
from kernel_judge.definition import Backend, Definition

XQA = "xqa"
_SYMBOL = "flashinfer.decode.xqa_batch_decode_with_kv_cache"
_PAGE_SIZES = (16, 32, 64, 128)
_LONGEST_HEAD = 512
# query heads that share a KV head: rows of one tile, of which long heads have fewer
_MOST_SHARING, _MOST_SHARING_LONG, _LONG_HEAD = 32, 16, 256
# semaphores first, which must be zero and are left so, then partial outputs: those of
# an H200's 132 blocks, each of 32 heads of 512 in 2 bytes, are below 5 MiB
_SCRATCH_BYTES = 8 * 2**20 + 32 * 2**20


def xqa_backend(definition: Definition) -> Backend:
    """Return the backend of a decode, with its limit where it has no such kernel."""
    limit = _limit(definition)
    return Backend(XQA, min_sm=90, lacks=("lse",), limit=limit, symbol=_SYMBOL)


def _limit(definition: Definition) -> str:
    """Return why XQA has no kernel for a definition, empty where it has one."""
    axes, variant = definition.axes, variant_of(definition)
    page_size, dim = axes["page_size"], axes["head_dim"]
    sharing = axes["num_qo_heads"] // axes["num_kv_heads"]
    most = _MOST_SHARING if dim <= _LONG_HEAD else _MOST_SHARING_LONG
    if page_size not in _PAGE_SIZES:
        return f"pages have 16, 32, 64 or 128 tokens, not {page_size}"
    if dim % 16 or dim > _LONGEST_HEAD:
        return f"heads have a multiple of 16 up to {_LONGEST_HEAD} elements, not {dim}"
    if sharing > most:
        return f"at most {most} query heads of {dim} share a KV head, not {sharing}"
    if variant.soft_cap:
        return "logits have no cap"
    if variant.slopes:
        return "logits have no bias of ALiBi"
    dtype = definition.interface.input_specs["q"].dtype
    if dtype not in ("float16", "bfloat16"):
        return f"queries are float16 or bfloat16, not {dtype}"
    if definition.interface.input_specs["k_cache"].dtype != dtype:
        return "beside keys of 8 bits it rounds queries to 8, which is another function"
    return ""


@cache
def _scratch(device: torch.device) -> torch.Tensor:
    # not the wrappers' scratch, which they leave full of partial outputs
    return torch.zeros(_SCRATCH_BYTES, dtype=torch.uint8, device=device)


def xqa_decode(
    definition: Definition, inputs: Mapping[str, Any]
) -> tuple[torch.Tensor, None]:
    """Call XQA; return output [batch_size, num_qo_heads, head_dim], as q, and no LSE."""
    from flashinfer.decode import xqa_batch_decode_with_kv_cache

    q, table = inputs["q"], input_table(inputs)
    page_size = definition.axes["page_size"]
    lengths = kv_lengths(table, page_size)
    starts, counts = table.indptr.tolist(), table.indptr.diff().tolist()
    # one row of pages a sequence; those past its end are not read
    pages = torch.zeros((len(counts), max(counts)), dtype=torch.int32, device=q.device)
    for row, (start, count) in enumerate(zip(starts, counts, strict=False)):
        pages[row, :count] = table.indices[start : start + count]
    output = xqa_batch_decode_with_kv_cache(
        q,
        (inputs["k_cache"], inputs["v_cache"]),
        _scratch(q.device),
        pages,
        torch.tensor(lengths, dtype=torch.int32, device=q.device),
        max(lengths),
        bmm1_scale=float(inputs["sm_scale"]),
        bmm2_scale=1.0,
        window_left=variant_of(definition).window_left,
        sinks=inputs.get("sinks"),
        kv_layout="HND" if is_head_major(definition) else "NHD",
    )
    return output, None
