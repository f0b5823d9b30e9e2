"""gqa_paged: grouped-query attention over a paged key-value cache.

Decode has one query a sequence. Prefill, which has the input `qo_indptr`, has several
under a causal mask aligned bottom-right. LSE is base 2. Interfaces of page size 1 have
no kv_last_page_len. A name may state a sliding window (`w127`), a soft cap (`cap50`),
sinks, or that there is no mask (`noncausal`).
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.attention.cases import (
    decode_cases,
    prefill_cases,
    scale_of,
    sink_logits,
)
from generator.ops.attention.flashinfer import (
    PLAIN_SUFFIX,
    planned,
    prefill_backends,
    sink_arguments,
    with_sinks,
    workspace,
)
from generator.ops.attention.oracle import oracle_paged, rows_with_a_key
from generator.ops.attention.relations import attention_relations
from generator.ops.attention.sequences import is_prefill
from generator.ops.attention.tolerances import attention_tolerances
from generator.ops.attention.variant import has_sinks, variant_of
from generator.ops.paging import (
    cache,
    indptr,
    input_table,
    page_table,
    query_starts,
)
from generator.testing.definition import Backend, Case, Definition
from generator.testing.relation import Relation
from generator.testing.seeded_inputs import Stream

TOLERANCES = attention_tolerances(products=256, total=800)
_CUDA_CORES = Backend("cuda-cores")
# head ratios that the kernel without tensor cores is compiled for
_CUDA_CORE_RATIOS = (1, 2, 4, 8)


def cases(definition: Definition) -> list[Case]:
    """Return the decode or prefill cases for the definition's page size."""
    of_stage = prefill_cases if is_prefill(definition) else decode_cases
    return of_stage(definition)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs, with pages in random order and loud stale slots.

    q bfloat16 [total_q or batch_size, num_qo_heads, head_dim]; k_cache and v_cache
    bfloat16 [num_pages, page_size, num_kv_heads, head_dim]; the page table int32.
    """
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
        "sinks": sink_logits(heads, stream),
    }
    return {name: made[name] for name in definition.interface.inputs}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output, shaped as q, and LSE [queries, num_qo_heads], in float64."""
    caches = inputs["k_cache"], inputs["v_cache"]
    return oracle_paged(inputs["q"], *caches, inputs, variant_of(definition))


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see at least one key: bool [total_q]."""
    variant = variant_of(definition)
    return rows_with_a_key(inputs, definition.axes["page_size"], variant)


def relations(definition: Definition) -> list[Relation]:
    """Return the relations between calls with other layouts of the sequences."""
    return attention_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3; for decode also the kernel without tensor cores."""
    found = prefill_backends(definition)
    ratio = definition.axes["num_qo_heads"] // definition.axes["num_kv_heads"]
    if is_prefill(definition) or ratio not in _CUDA_CORE_RATIOS:
        return found
    return found if has_sinks(definition) else (_CUDA_CORES, *found)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's paged decode or prefill."""
    import flashinfer

    q, caches = inputs["q"], (inputs["k_cache"], inputs["v_cache"])
    sinks = inputs.get("sinks")
    table = input_table(inputs)
    # the wrappers add last_page_len even without a page: an empty sequence needs 0
    last = table.last_page_len.where(table.indptr.diff() > 0, 0)
    sizes = [
        definition.axes[axis]
        for axis in ("num_qo_heads", "num_kv_heads", "head_dim", "page_size")
    ]
    if is_prefill(definition) or sinks is not None:
        kernel = backend.removesuffix(PLAIN_SUFFIX)
        fused = sinks is not None and kernel == backend
        prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            workspace(q.device),
            "NHD",
            backend=kernel,
            **(sink_arguments(definition, inputs, kernel) if fused else {}),
        )
        prefill.plan(
            query_starts(inputs),
            table.indptr,
            table.indices,
            last,
            *sizes,
            causal=variant_of(definition).causal,
            **planned(definition, inputs),
        )
        if fused:
            return prefill.run(q, caches, sinks, inputs["sm_scale"], return_lse=True)
        output, lse = prefill.run(q, caches, return_lse=True)
        return (output, lse) if sinks is None else with_sinks(output, lse, sinks)
    tensor_cores = backend != _CUDA_CORES.name
    decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        workspace(q.device),
        "NHD",
        use_tensor_cores=tensor_cores,
        backend=backend if tensor_cores else "auto",
    )
    decode.plan(
        table.indptr, table.indices, last, *sizes, **planned(definition, inputs)
    )
    return decode.run(q, caches, return_lse=True)
