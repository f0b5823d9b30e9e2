"""gqa_paged: grouped-query attention over a paged key-value cache.

Decode has one query a sequence. Prefill, which has the input `qo_indptr`, has several
under a causal mask aligned bottom-right. LSE is base 2. Interfaces of page size 1 have
no kv_last_page_len. With the input `return_lse`, which calls pass, LSE is returned where
it is true. A name may state a sliding window (`w127`), a soft cap (`cap50`),
sinks, ALiBi, that there is no mask (`noncausal`) or one of its own (`custom_mask`), and
how the cache is stored (`kve4m3`, `hnd`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from generator.ops.attention.caches import (
    drawn_dtype,
    drawn_scale,
    is_head_major,
    over_heads,
    stored,
    stored_scales,
    switched,
)
from generator.ops.attention.cases import (
    HEAVY_OUTSIDE,
    decode_cases,
    prefill_cases,
    scale_of,
    sink_logits,
)
from generator.ops.attention.flashinfer import (
    PLAIN_SUFFIX,
    counted,
    from_last_key,
    planned,
    prefill_backends,
    sink_arguments,
    skip_cleared,
    skip_unmasked,
    with_sinks,
    workspace,
)
from generator.ops.attention.masks import tree_masks
from generator.ops.attention.oracle import oracle_paged, rows_with_a_key
from generator.ops.attention.relations import attention_relations
from generator.ops.attention.sequences import is_prefill
from generator.ops.attention.tolerances import attention_tolerances
from generator.ops.attention.variant import has_mask, has_sinks, variant_of
from generator.ops.attention.xqa import XQA, xqa_backend, xqa_decode
from generator.ops.paging import (
    cache,
    indptr,
    input_table,
    kv_lengths,
    page_table,
    query_starts,
    token_slots,
)
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.memory import dtype_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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

    q [total_q or batch_size, num_qo_heads, head_dim]; k_cache and v_cache [num_pages,
    page_size, num_kv_heads, head_dim], or with the axes of layout HND; the page table
    int32. Caches and queries with a scale are stored divided by it.
    """
    axes = {**definition.axes, **case.axes}
    table = page_table(
        case.params["kv_lens"], axes["page_size"], axes["num_pages"], stream
    )
    heads, dim = axes["num_qo_heads"], axes["head_dim"]
    cache_shape = (axes["num_pages"], axes["page_size"], axes["num_kv_heads"], dim)
    specs = definition.interface.input_specs
    inputs: dict[str, Any] = {
        "return_lse": True,
        "qo_indptr": indptr(case.params["q_lens"]),
        "kv_indptr": table.indptr,
        "kv_indices": table.indices,
        "kv_last_page_len": table.last_page_len,
        "sm_scale": scale_of(case, dim),
        "sinks": sink_logits(heads, stream),
    }
    for name in ("q", "k", "v"):
        inputs[f"{name}_scale"] = drawn_scale(definition, case, name)
    queries = stream.child("q").values(
        (axes["total_q"], heads, dim), case.params["q_std"]
    )
    inputs["q"] = stored(queries, inputs["q_scale"], dtype_of(specs["q"].dtype))
    for name in ("k", "v"):
        dtype, scale = dtype_of(specs[f"{name}_cache"].dtype), inputs[f"{name}_scale"]
        is_heavy = name == "k" and case.name == HEAVY_OUTSIDE
        drawn = torch.float32 if is_heavy else drawn_dtype(scale, dtype)
        values = cache(cache_shape, table, stream.child(name), drawn)
        if is_heavy:
            _outweigh(definition, values, queries, token_slots(table, cache_shape[1]))
        values = stored(values, scale, dtype)
        inputs[f"{name}_cache"] = switched(definition, values).contiguous()
    if has_mask(definition):
        inputs["custom_mask"] = tree_masks(case, stream)
    return {name: inputs[name] for name in definition.interface.inputs}


def _outweigh(
    definition: Definition,
    keys: torch.Tensor,
    queries: torch.Tensor,
    slots: Sequence[torch.Tensor],
) -> None:
    """Make the first key of each sequence longer than the window equal to its query.

    It would outweigh all others: of each group of heads it is the first one's. keys
    [num_pages, page_size, num_kv_heads, head_dim] is changed; queries [batch_size,
    num_qo_heads, head_dim]; slots int64 [length] each.
    """
    heads = definition.axes["num_kv_heads"]
    covered = variant_of(definition).window_left + 1
    for query, slot in zip(queries, slots, strict=True):
        if len(slot) > covered:
            keys.flatten(0, 1)[slot[0]] = query.unflatten(0, (heads, -1))[:, 0]


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output, shaped as q, and LSE [queries, num_qo_heads], in float64."""
    k, v = (switched(definition, inputs[name]) for name in ("k_cache", "v_cache"))
    of_q, *scales = (
        over_heads(inputs.get(f"{name}_scale", 1.0)) for name in ("q", "k", "v")
    )
    q = inputs["q"].double() * of_q
    return oracle_paged(q, k, v, inputs, variant_of(definition), tuple(scales))


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see at least one key: bool [total_q]."""
    variant = variant_of(definition)
    return rows_with_a_key(inputs, definition.axes["page_size"], variant)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3; for decode also the kernel without tensor cores, and XQA."""
    backends = prefill_backends(definition)
    if is_prefill(definition):
        return backends
    backends = (*backends, xqa_backend(definition))
    ratio = definition.axes["num_qo_heads"] // definition.axes["num_kv_heads"]
    if ratio not in _CUDA_CORE_RATIOS:
        return backends
    lacking = has_sinks(definition) or "q_scale" in definition.interface.inputs
    return backends if lacking else (*counted(definition, (_CUDA_CORES,)), *backends)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return output, as the queries, and float32 LSE of FlashInfer's paged attention.

    XQA has no LSE: None.
    """
    if backend == XQA:
        return xqa_decode(definition, inputs)
    q, sinks = inputs["q"], inputs.get("sinks")
    caches = inputs["k_cache"], inputs["v_cache"]
    scales = {name: inputs[name] for name in stored_scales(definition)}
    tensor_cores = backend != _CUDA_CORES.name
    kernel = backend.removesuffix(PLAIN_SUFFIX) if tensor_cores else "auto"
    fused = sinks is not None and kernel == backend
    wrapper = _planned_wrapper(definition, inputs, kernel, fused)
    if fused:
        return wrapper.run(q, caches, sinks, inputs["sm_scale"], return_lse=True)
    if "q_scale" in scales:
        # of each head: these are no keyword arguments
        return wrapper.run(q, caches, *scales.values(), return_lse=True)
    answer = wrapper.run(q, caches, **scales, return_lse=True)
    slopes = variant_of(definition).slopes
    if sinks is None and not slopes:
        return answer
    output, lse = answer
    if sinks is not None:
        return with_sinks(output, lse, sinks)
    return output, from_last_key(definition, inputs, lse)


def _planned_wrapper(
    definition: Definition, inputs: dict[str, Any], kernel: str, fused: bool
) -> Any:
    """Return FlashInfer's paged decode or prefill, with sinks if `fused`, after plan().

    `kernel` auto is decode without tensor cores.
    """
    import flashinfer

    layout = "HND" if is_head_major(definition) else "NHD"
    scratch, table = workspace(inputs["q"].device), input_table(inputs)
    # the wrappers add last_page_len even without a page: an empty sequence needs 0
    last = table.last_page_len.where(table.indptr.diff() > 0, 0)
    sizes = [
        definition.axes[axis]
        for axis in ("num_qo_heads", "num_kv_heads", "head_dim", "page_size")
    ]
    options = planned(definition, inputs)
    if kernel != "auto":
        skip_unmasked(definition, inputs, kernel)
    if not is_prefill(definition) and "sinks" not in inputs:
        decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            scratch, layout, use_tensor_cores=kernel != "auto", backend=kernel
        )
        decode.plan(table.indptr, table.indices, last, *sizes, **options)
        return decode
    if has_mask(definition):
        # here an empty sequence's part of the mask is computed as if it had a page
        last = last.where(last > 0, sizes[-1])
        lengths = torch.tensor(kv_lengths(table, sizes[-1]), dtype=torch.int32)
        options["seq_lens"] = lengths
    skip_cleared(definition, inputs, kernel)
    prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
        scratch,
        layout,
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
        **options,
    )
    return prefill


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=attention_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)
