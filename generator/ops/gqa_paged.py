"""gqa_paged: grouped-query attention over a paged key-value cache.

Decode has one query a sequence; prefill (`qo_indptr` among the inputs) has several under
a causal mask aligned bottom-right. LSE is base 2. Interfaces of page size 1 carry no
kv_last_page_len.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.support.attention import (
    FA2,
    FA3,
    FROM_BF16_WEIGHTS,
    LSE_FROM_BF16_SUM,
    TO_ORACLE,
    decode_cases,
    lse_of_tensor_cores,
    oracle_paged,
    prefill_cases,
    rows_with_a_key,
    scale_of,
    workspace,
)
from generator.support.definition import Backend, Case, Definition
from generator.support.paging import (
    cache,
    indptr,
    input_table,
    page_table,
)
from generator.support.related_attention import attention_relations
from generator.support.relation import Relation
from generator.support.stream import Stream

TOLERANCES = (
    *TO_ORACLE,
    *FROM_BF16_WEIGHTS,
    LSE_FROM_BF16_SUM,
    lse_of_tensor_cores(products=256, total=800),
)
_CUDA_CORES = Backend("cuda-cores")
# head ratios that the kernel without tensor cores is compiled for
_CUDA_CORE_RATIOS = (1, 2, 4, 8)


def is_prefill(definition: Definition) -> bool:
    """Return whether a sequence may have several queries."""
    return "qo_indptr" in definition.interface.inputs


def cases(definition: Definition) -> list[Case]:
    """Return the attention cases for the definition's page size."""
    of_stage = prefill_cases if is_prefill(definition) else decode_cases
    return of_stage(definition.axes["page_size"])


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return bfloat16 queries and caches, with pages shuffled and stale slots loud."""
    axes = {**definition.axes, **case.axes}
    table = page_table(
        case.params["kv_lens"], axes["page_size"], axes["num_pages"], stream
    )
    heads, dim = axes["num_qo_heads"], axes["head_dim"]
    cache_shape = (axes["num_pages"], axes["page_size"], axes["num_kv_heads"], dim)
    made = {
        "q": stream.child("q").values(
            (axes["total_q"], heads, dim), case.params["q_std"], torch.bfloat16
        ),
        "k_cache": cache(cache_shape, table, stream.child("k"), torch.bfloat16),
        "v_cache": cache(cache_shape, table, stream.child("v"), torch.bfloat16),
        "qo_indptr": indptr(case.params["q_lens"]),
        "kv_indptr": table.indptr,
        "kv_indices": table.indices,
        "kv_last_page_len": table.last_page_len,
        "sm_scale": scale_of(case, dim),
    }
    return {name: made[name] for name in definition.interface.inputs}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output and LSE in float64."""
    return oracle_paged(inputs["q"], inputs["k_cache"], inputs["v_cache"], inputs)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see a key: bool [total_q]."""
    return rows_with_a_key(inputs, definition.axes["page_size"])


def relations(definition: Definition) -> list[Relation]:
    """Return what holds between calls however sequences are laid out."""
    return attention_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3, and for decode the kernel without tensor cores."""
    ratio = definition.axes["num_qo_heads"] // definition.axes["num_kv_heads"]
    if is_prefill(definition) or ratio not in _CUDA_CORE_RATIOS:
        return (FA2, FA3)
    return (_CUDA_CORES, FA2, FA3)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call FlashInfer's batch wrapper for paged decode or prefill."""
    import flashinfer

    q, sm_scale = inputs["q"], inputs["sm_scale"]
    table = input_table(inputs)
    # the wrappers count a missing page by its last_page_len: an empty one must say 0
    last = table.last_page_len.where(table.indptr.diff() > 0, 0)
    sizes = [
        definition.axes[axis]
        for axis in ("num_qo_heads", "num_kv_heads", "head_dim", "page_size")
    ]
    types = {"q_data_type": q.dtype, "kv_data_type": inputs["k_cache"].dtype}
    if is_prefill(definition):
        prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            workspace(q.device), "NHD", backend=backend
        )
        prefill.plan(
            inputs["qo_indptr"],
            table.indptr,
            table.indices,
            last,
            *sizes,
            causal=True,
            sm_scale=sm_scale,
            **types,
        )
        return prefill.run(q, (inputs["k_cache"], inputs["v_cache"]), return_lse=True)
    tensor_cores = backend != _CUDA_CORES.name
    decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        workspace(q.device),
        "NHD",
        use_tensor_cores=tensor_cores,
        backend=backend if tensor_cores else "auto",
    )
    decode.plan(table.indptr, table.indices, last, *sizes, sm_scale=sm_scale, **types)
    return decode.run(q, (inputs["k_cache"], inputs["v_cache"]), return_lse=True)
