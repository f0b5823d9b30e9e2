"""Reference tests of op_type gqa_paged.

Rendered: don't edit. `gen-tests --op-type gqa_paged` renders this file anew.

Each class tests one definition. It compares what the definition's `run()` returns with
- FlashInfer's kernels, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
Tolerances: TOLERANCES below, else kernel_judge/comparison/tolerance.py by dtype.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from generator.ops.attention.caches import (
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
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesFlashInfer,
    MatchesRecorded,
    Metamorphic,
    main,
)
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import dtype_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import Relation

# ---- the op: cases, inputs, float64 oracle, production kernels

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
    made: dict[str, Any] = {
        "return_lse": True,
        "qo_indptr": indptr(case.params["q_lens"]),
        "kv_indptr": table.indptr,
        "kv_indices": table.indices,
        "kv_last_page_len": table.last_page_len,
        "sm_scale": scale_of(case, dim),
        "sinks": sink_logits(heads, stream),
    }
    for name in ("q", "k", "v"):
        made[f"{name}_scale"] = drawn_scale(definition, case, name)
    queries = stream.child("q").values(
        (axes["total_q"], heads, dim), case.params["q_std"]
    )
    made["q"] = stored(queries, made["q_scale"], dtype_of(specs["q"].dtype))
    for name in ("k", "v"):
        values = cache(cache_shape, table, stream.child(name), torch.float32)
        if name == "k" and case.name == HEAVY_OUTSIDE:
            _outweigh(definition, values, queries, token_slots(table, cache_shape[1]))
        dtype = dtype_of(specs[f"{name}_cache"].dtype)
        values = stored(values, made[f"{name}_scale"], dtype)
        made[f"{name}_cache"] = switched(definition, values).contiguous()
    if has_mask(definition):
        lengths = case.params["q_lens"], case.params["kv_lens"]
        made["custom_mask"] = tree_masks(*lengths, stream)
    return {name: made[name] for name in definition.interface.inputs}


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
    for query, own in zip(queries, slots, strict=True):
        if len(own) > covered:
            keys.flatten(0, 1)[own[0]] = query.unflatten(0, (heads, -1))[:, 0]


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


def relations(definition: Definition) -> list[Relation]:
    """Return the relations between calls with other layouts of the sequences."""
    return attention_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3; for decode also the kernel without tensor cores, and XQA."""
    found = prefill_backends(definition)
    if is_prefill(definition):
        return found
    found = (*found, xqa_backend(definition))
    ratio = definition.axes["num_qo_heads"] // definition.axes["num_kv_heads"]
    if ratio not in _CUDA_CORE_RATIOS:
        return found
    lacking = has_sinks(definition) or "q_scale" in definition.interface.inputs
    return found if lacking else (*counted(definition, (_CUDA_CORES,)), *found)


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


# ---- the interfaces

INTERFACE_GQA_PAGED_DECODE_PS64 = Interface(
    inputs={
        "q": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_DECODE_FP16 = Interface(
    inputs={
        "q": "float16[batch_size, num_qo_heads, head_dim]",
        "k_cache": "float16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "float16[num_pages, page_size, num_kv_heads, head_dim]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "float16[batch_size, num_qo_heads, head_dim]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_DECODE_PS1 = Interface(
    inputs={
        "q": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_DECODE_HND = Interface(
    inputs={
        "q": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
        "v_cache": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_DECODE_KVE4M3 = Interface(
    inputs={
        "q": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "k_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "k_scale": "float32",
        "v_scale": "float32",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
        "k_scale > 0",
        "v_scale > 0",
    ),
)
INTERFACE_GQA_PAGED_DECODE_QE4M3_KVE4M3 = Interface(
    inputs={
        "q": "float8_e4m3fn[batch_size, num_qo_heads, head_dim]",
        "k_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "q_scale": "float32[num_qo_heads]",
        "k_scale": "float32[num_kv_heads]",
        "v_scale": "float32[num_kv_heads]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
        "q_scale.min() > 0",
        "k_scale.min() > 0",
        "v_scale.min() > 0",
    ),
)
INTERFACE_GQA_PAGED_DECODE_RETURN_LSE = Interface(
    inputs={
        "q": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "sm_scale": "float32",
        "return_lse": "bool",
    },
    outputs={
        "output": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_DECODE_SINK = Interface(
    inputs={
        "q": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "sinks": "float32[num_qo_heads]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_PREFILL = Interface(
    inputs={
        "q": "bfloat16[total_q, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL_FP16 = Interface(
    inputs={
        "q": "float16[total_q, num_qo_heads, head_dim]",
        "k_cache": "float16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "float16[num_pages, page_size, num_kv_heads, head_dim]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "float16[total_q, num_qo_heads, head_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL = Interface(
    inputs={
        "q": "bfloat16[total_q, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL_HND = Interface(
    inputs={
        "q": "bfloat16[total_q, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
        "v_cache": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL_KVE4M3 = Interface(
    inputs={
        "q": "bfloat16[total_q, num_qo_heads, head_dim]",
        "k_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "k_scale": "float32",
        "v_scale": "float32",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
        "k_scale > 0",
        "v_scale > 0",
    ),
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL_QE4M3_KVE4M3 = Interface(
    inputs={
        "q": "float8_e4m3fn[total_q, num_qo_heads, head_dim]",
        "k_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "q_scale": "float32[num_qo_heads]",
        "k_scale": "float32[num_kv_heads]",
        "v_scale": "float32[num_kv_heads]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
        "q_scale.min() > 0",
        "k_scale.min() > 0",
        "v_scale.min() > 0",
    ),
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL_SINK = Interface(
    inputs={
        "q": "bfloat16[total_q, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "sinks": "float32[num_qo_heads]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_PREFILL_CUSTOM_MASK = Interface(
    inputs={
        "q": "bfloat16[total_q, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "custom_mask": "bool[mask_len]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
        "mask_len == sum((qo_indptr[b + 1] - qo_indptr[b]) * ((kv_indptr[b + 1] - kv_indptr[b] - 1) * page_size + kv_last_page_len[b]) for b in range(batch_size) if kv_indptr[b + 1] > kv_indptr[b])",
    ),
)

# ---- the references, as the definitions have them


# fmt: off
# of gqa_paged_decode_alibi_h32_kv32_d128_ps64,
# gqa_paged_decode_alibi_h40_kv40_d128_ps64
def reference_gqa_paged_decode_alibi():
    import math

    import torch


    def alibi_slopes(num_qo_heads: int) -> list[float]:
        # The largest power of 2 up to the number of heads; the others come between.
        whole = 1 << (num_qo_heads.bit_length() - 1)
        return [
            2 ** (-8 * (h + 1) / whole)
            if h < whole
            else 2 ** (-4 * (2 * (h - whole) + 1) / whole)
            for h in range(num_qo_heads)
        ]


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads
        slopes = torch.tensor(alibi_slopes(num_qo_heads), device=q.device)
        slopes = slopes.reshape(num_kv_heads, group_size, 1)

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            # The query stands at the last key: a key is at a distance of 0 or less.
            logits += slopes * torch.arange(1 - kv_len, 1, device=q.device)
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_cap30_h48_kv8_d128_ps64
def reference_gqa_paged_decode_cap30_h48_kv8_ps64():
    import math

    import torch

    # Bound of the scaled logits.
    LOGITS_SOFT_CAP = 30.0


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            logits = LOGITS_SOFT_CAP * torch.tanh(logits / LOGITS_SOFT_CAP)
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_cap50_h16_kv8_d256_ps64, gqa_paged_decode_cap50_h32_kv16_d128_ps64
def reference_gqa_paged_decode_cap50_ps64():
    import math

    import torch

    # Bound of the scaled logits.
    LOGITS_SOFT_CAP = 50.0


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            logits = LOGITS_SOFT_CAP * torch.tanh(logits / LOGITS_SOFT_CAP)
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_cap50_w4095_h16_kv8_d256_ps64,
# gqa_paged_decode_cap50_w4095_h32_kv16_d128_ps64
def reference_gqa_paged_decode_cap50_w4095_ps64():
    import math

    import torch

    # Keys before a query's own that it sees; with its own that is one more.
    WINDOW_LEFT = 4095
    # Bound of the scaled logits.
    LOGITS_SOFT_CAP = 50.0


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()
            # The query stands at the last key.
            first_key = max(kv_len - 1 - WINDOW_LEFT, 0)
            keys, values = keys[first_key:], values[first_key:]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            logits = LOGITS_SOFT_CAP * torch.tanh(logits / LOGITS_SOFT_CAP)
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_fp16_h32_kv32_d128_ps64 and 19 more definitions
def reference_gqa_paged_decode_ps64():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_h16_kv2_d128_ps1 and 8 more definitions
def reference_gqa_paged_decode_ps1():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        num_kv_heads = k_cache.shape[2]
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            keys = k_cache[pages, 0].float()  # [kv_len, num_kv_heads, head_dim]
            values = v_cache[pages, 0].float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_hnd_h32_kv4_d128_ps64, gqa_paged_decode_hnd_h32_kv8_d128_ps64
def reference_gqa_paged_decode_hnd():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, num_kv_heads, page_size, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            # The cache has a head's tokens side by side: heads come before slots.
            keys = k_cache[pages].transpose(1, 2).flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].transpose(1, 2).flatten(0, 1)[:kv_len].float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_kve4m3_h32_kv4_d128_ps64,
# gqa_paged_decode_kve4m3_h32_kv8_d128_ps64, gqa_paged_decode_kve4m3_h64_kv8_d128_ps64
def reference_gqa_paged_decode_kve4m3():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        k_scale: float,
        v_scale: float,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float() * k_scale
            values = v_cache[pages].flatten(0, 1)[:kv_len].float() * v_scale

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_qe4m3_kve4m3_h32_kv8_d128_ps64,
# gqa_paged_decode_qe4m3_kve4m3_h64_kv8_d128_ps64
def reference_gqa_paged_decode_qe4m3_kve4m3():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        q_scale: torch.Tensor,
        k_scale: torch.Tensor,
        v_scale: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros(q.shape, dtype=torch.bfloat16, device=q.device)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float() * k_scale[:, None]
            values = v_cache[pages].flatten(0, 1)[:kv_len].float() * v_scale[:, None]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = (q[b].float() * q_scale[:, None]).reshape(
                num_kv_heads, group_size, head_dim
            )
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(torch.bfloat16)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_return_lse_h16_kv2_d128_ps1 and 3 more definitions
def reference_gqa_paged_decode_return_lse():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        sm_scale: float,
        return_lse: bool = False,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        num_kv_heads = k_cache.shape[2]
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            keys = k_cache[pages, 0].float()  # [kv_len, num_kv_heads, head_dim]
            values = v_cache[pages, 0].float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return (output, lse) if return_lse else output

    return run


# of gqa_paged_decode_sink_h64_kv8_d64_ps64
def reference_gqa_paged_decode_sink():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        sinks: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns: of its sink alone.
        output = torch.zeros_like(q)
        lse = (sinks.float() / math.log(2)).repeat(len(q), 1)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            # A sink is one more logit, unscaled, whose value is zero.
            sink = sinks.float().reshape(num_kv_heads, group_size, 1)
            logits = torch.cat([logits, sink.expand(*logits.shape[:-1], 1)], dim=-1)
            weights = logits.softmax(dim=-1)[..., :-1]
            attended = torch.einsum("hgk,khd->hgd", weights, values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_sink_w127_h64_kv8_d64_ps64
def reference_gqa_paged_decode_sink_w127():
    import math

    import torch

    # Keys before a query's own that it sees; with its own that is one more.
    WINDOW_LEFT = 127


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        sinks: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns: of its sink alone.
        output = torch.zeros_like(q)
        lse = (sinks.float() / math.log(2)).repeat(len(q), 1)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()
            # The query stands at the last key.
            first_key = max(kv_len - 1 - WINDOW_LEFT, 0)
            keys, values = keys[first_key:], values[first_key:]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            # A sink is one more logit, unscaled, whose value is zero.
            sink = sinks.float().reshape(num_kv_heads, group_size, 1)
            logits = torch.cat([logits, sink.expand(*logits.shape[:-1], 1)], dim=-1)
            weights = logits.softmax(dim=-1)[..., :-1]
            attended = torch.einsum("hgk,khd->hgd", weights, values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_w1023_h32_kv16_d128_ps64,
# gqa_paged_decode_w1023_h32_kv16_d256_ps64
def reference_gqa_paged_decode_w1023_h32_kv16_ps64():
    import math

    import torch

    # Keys before a query's own that it sees; with its own that is one more.
    WINDOW_LEFT = 1023


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()
            # The query stands at the last key.
            first_key = max(kv_len - 1 - WINDOW_LEFT, 0)
            keys, values = keys[first_key:], values[first_key:]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_w4095_h32_kv32_d128_ps64, gqa_paged_decode_w4095_h32_kv8_d128_ps64
def reference_gqa_paged_decode_w4095_h32_ps64():
    import math

    import torch

    # Keys before a query's own that it sees; with its own that is one more.
    WINDOW_LEFT = 4095


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()
            # The query stands at the last key.
            first_key = max(kv_len - 1 - WINDOW_LEFT, 0)
            keys, values = keys[first_key:], values[first_key:]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_alibi_h32_kv32_d128_ps64,
# gqa_paged_prefill_causal_alibi_h40_kv40_d128_ps64
def reference_gqa_paged_prefill_causal_alibi():
    import math

    import torch


    def alibi_slopes(num_qo_heads: int) -> list[float]:
        # The largest power of 2 up to the number of heads; the others come between.
        whole = 1 << (num_qo_heads.bit_length() - 1)
        return [
            2 ** (-8 * (h + 1) / whole)
            if h < whole
            else 2 ** (-4 * (2 * (h - whole) + 1) / whole)
            for h in range(num_qo_heads)
        ]


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads
        slopes = torch.tensor(alibi_slopes(num_qo_heads), device=q.device)
        slopes = slopes.reshape(num_kv_heads, group_size, 1)

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits += slopes[..., None] * (key_positions - query_positions[:, None])
            logits.masked_fill_(future, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_cap30_h48_kv8_d128_ps64
def reference_gqa_paged_prefill_causal_cap30_h48_kv8_ps64():
    import math

    import torch

    # Bound of the scaled logits.
    LOGITS_SOFT_CAP = 30.0


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits = LOGITS_SOFT_CAP * torch.tanh(logits / LOGITS_SOFT_CAP)
            logits.masked_fill_(hidden, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_cap50_h16_kv8_d256_ps64,
# gqa_paged_prefill_causal_cap50_h32_kv16_d128_ps64
def reference_gqa_paged_prefill_causal_cap50_ps64():
    import math

    import torch

    # Bound of the scaled logits.
    LOGITS_SOFT_CAP = 50.0


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits = LOGITS_SOFT_CAP * torch.tanh(logits / LOGITS_SOFT_CAP)
            logits.masked_fill_(hidden, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_cap50_w4095_h16_kv8_d256_ps64,
# gqa_paged_prefill_causal_cap50_w4095_h32_kv16_d128_ps64
def reference_gqa_paged_prefill_causal_cap50_w4095_ps64():
    import math

    import torch

    # Keys before a query's own that it sees; with its own that is one more.
    WINDOW_LEFT = 4095
    # Bound of the scaled logits.
    LOGITS_SOFT_CAP = 50.0


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]
            hidden |= key_positions[None, :] < query_positions[:, None] - WINDOW_LEFT

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits = LOGITS_SOFT_CAP * torch.tanh(logits / LOGITS_SOFT_CAP)
            logits.masked_fill_(hidden, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_fp16_h32_kv32_d128_ps64 and 21 more definitions
def reference_gqa_paged_prefill_causal_ps64():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(future, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_h16_kv2_d128_ps1 and 9 more definitions
def reference_gqa_paged_prefill_causal_ps1():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        num_kv_heads = k_cache.shape[2]
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            kv_len = kv_end - kv_start
            keys = k_cache[pages, 0].float()  # [kv_len, num_kv_heads, head_dim]
            values = v_cache[pages, 0].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(future, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_hnd_h32_kv4_d128_ps64,
# gqa_paged_prefill_causal_hnd_h32_kv8_d128_ps64
def reference_gqa_paged_prefill_causal_hnd():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, num_kv_heads, page_size, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            # The cache has a head's tokens side by side: heads come before slots.
            keys = k_cache[pages].transpose(1, 2).flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].transpose(1, 2).flatten(0, 1)[:kv_len].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(future, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_kve4m3_h32_kv4_d128_ps64,
# gqa_paged_prefill_causal_kve4m3_h32_kv8_d128_ps64,
# gqa_paged_prefill_causal_kve4m3_h64_kv8_d128_ps64
def reference_gqa_paged_prefill_causal_kve4m3():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        k_scale: float,
        v_scale: float,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float() * k_scale
            values = v_cache[pages].flatten(0, 1)[:kv_len].float() * v_scale

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(future, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_qe4m3_kve4m3_h32_kv8_d128_ps64,
# gqa_paged_prefill_causal_qe4m3_kve4m3_h64_kv8_d128_ps64
def reference_gqa_paged_prefill_causal_qe4m3_kve4m3():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        q_scale: torch.Tensor,
        k_scale: torch.Tensor,
        v_scale: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros(q.shape, dtype=torch.bfloat16, device=q.device)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float() * k_scale[:, None]
            values = v_cache[pages].flatten(0, 1)[:kv_len].float() * v_scale[:, None]

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float() * q_scale[:, None]
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(future, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(torch.bfloat16)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_sink_h64_kv8_d64_ps64
def reference_gqa_paged_prefill_causal_sink():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        sinks: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns: of its sink alone.
        output = torch.zeros_like(q)
        lse = (sinks.float() / math.log(2)).repeat(len(q), 1)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(hidden, -math.inf)
            # A sink is one more logit, unscaled, whose value is zero.
            sink = sinks.float().reshape(num_kv_heads, group_size, 1, 1)
            logits = torch.cat([logits, sink.expand(*logits.shape[:-1], 1)], dim=-1)
            weights = logits.softmax(dim=-1)[..., :-1]
            attended = torch.einsum("hgqk,khd->qhgd", weights, values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_sink_w127_h64_kv8_d64_ps64
def reference_gqa_paged_prefill_causal_sink_w127():
    import math

    import torch

    # Keys before a query's own that it sees; with its own that is one more.
    WINDOW_LEFT = 127


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        sinks: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns: of its sink alone.
        output = torch.zeros_like(q)
        lse = (sinks.float() / math.log(2)).repeat(len(q), 1)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]
            hidden |= key_positions[None, :] < query_positions[:, None] - WINDOW_LEFT

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(hidden, -math.inf)
            # A sink is one more logit, unscaled, whose value is zero.
            sink = sinks.float().reshape(num_kv_heads, group_size, 1, 1)
            logits = torch.cat([logits, sink.expand(*logits.shape[:-1], 1)], dim=-1)
            weights = logits.softmax(dim=-1)[..., :-1]
            attended = torch.einsum("hgqk,khd->qhgd", weights, values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_w1023_h32_kv16_d128_ps64,
# gqa_paged_prefill_causal_w1023_h32_kv16_d256_ps64
def reference_gqa_paged_prefill_causal_w1023_h32_kv16_ps64():
    import math

    import torch

    # Keys before a query's own that it sees; with its own that is one more.
    WINDOW_LEFT = 1023


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]
            hidden |= key_positions[None, :] < query_positions[:, None] - WINDOW_LEFT

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(hidden, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_w4095_h32_kv32_d128_ps64,
# gqa_paged_prefill_causal_w4095_h32_kv8_d128_ps64
def reference_gqa_paged_prefill_causal_w4095_h32_ps64():
    import math

    import torch

    # Keys before a query's own that it sees; with its own that is one more.
    WINDOW_LEFT = 4095


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]
            hidden |= key_positions[None, :] < query_positions[:, None] - WINDOW_LEFT

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(hidden, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_custom_mask_h32_kv8_d128_ps64,
# gqa_paged_prefill_custom_mask_h64_kv4_d128_ps64,
# gqa_paged_prefill_custom_mask_h64_kv8_d128_ps64
def reference_gqa_paged_prefill_custom_mask():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        custom_mask: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        mask_start = 0
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # The masks of the sequences follow one another, each in rows of kv_len.
            q_len = qo_end - qo_start
            mask_end = mask_start + q_len * kv_len
            seen = custom_mask[mask_start:mask_end].reshape(q_len, kv_len)
            mask_start = mask_end

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(~seen, -math.inf)
            # A query that sees no key has no weights; a softmax of it would be NaN.
            weights = logits.softmax(dim=-1).masked_fill(~seen, 0.0)
            attended = torch.einsum("hgqk,khd->qhgd", weights, values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_noncausal_h32_kv8_d128_ps64
def reference_gqa_paged_prefill_noncausal():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(-1, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# fmt: on
# ---- the tests


class GqaPagedTests(GroundTruthsAgree, MatchesFlashInfer, MatchesRecorded, Metamorphic):
    """What the tests of gqa_paged share."""

    op_type = "gqa_paged"
    sizes = ("small", "medium")
    tolerances = TOLERANCES
    cases = staticmethod(cases)
    make_inputs = staticmethod(make_inputs)
    oracle = staticmethod(oracle)
    defined_rows = staticmethod(defined_rows)
    relations = staticmethod(relations)
    flashinfer_backends = staticmethod(flashinfer_backends)
    flashinfer_ground_truth = staticmethod(flashinfer_ground_truth)


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 32 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. ALiBi adds slope * (j - p)
# to the scaled logit of the key at j for a query at p, which is 0 for its own key. With
# n the largest power of 2 up to the number of query heads, slope is 2 ** (-8 * (h + 1)
# / n) for head h < n, and 2 ** (-4 * (2 * (h - n) + 1) / n) for the others. A query
# that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:mpt-7b, model:bloom-7b1,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeAlibiH32Kv32D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_alibi_h32_kv32_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_alibi)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 32
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("alibi",)
    ALIBI = True  # "alibi" in the name
    sha256 = "e7220a2572e2d8e018ab6b859a4f4015aa9d5a8ae0565bfb0297d361ca559471"


# Grouped-query attention over a paged KV cache, decode: 40 query heads share 40 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. ALiBi adds slope * (j - p)
# to the scaled logit of the key at j for a query at p, which is 0 for its own key. With
# n the largest power of 2 up to the number of query heads, slope is 2 ** (-8 * (h + 1)
# / n) for head h < n, and 2 ** (-4 * (2 * (h - n) + 1) / n) for the others. A query
# that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:baichuan2-13b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeAlibiH40Kv40D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_alibi_h40_kv40_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_alibi)
    NUM_QO_HEADS = 40
    NUM_KV_HEADS = 40
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("alibi",)
    ALIBI = True  # "alibi" in the name
    sha256 = "5bd0febe7367d4458e94f394e6f7563eeb14e5d913c634307f593463b2ed538a"


# Grouped-query attention over a paged KV cache, decode: 48 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A scaled logit l becomes 30
# * tanh(l / 30), before mask and softmax. A query that sees no key gives output 0 and
# lse -inf. lse is base 2.
# stage:decode, model:grok-1,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeCap30H48Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_cap30_h48_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_cap30_h48_kv8_ps64)
    NUM_QO_HEADS = 48
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 30  # "cap30" in the name
    sha256 = "3482d65c2b98a40a0d8d56e1ff806dfaa01632a737797e0bcce5949ae3029fcb"


# Grouped-query attention over a paged KV cache, decode: 16 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A scaled logit l becomes 50
# * tanh(l / 50), before mask and softmax. A query that sees no key gives output 0 and
# lse -inf. lse is base 2.
# stage:decode, model:gemma-2-9b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeCap50H16Kv8D256Ps64(GqaPagedTests):
    name = "gqa_paged_decode_cap50_h16_kv8_d256_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_cap50_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 8
    HEAD_DIM = 256
    PAGE_SIZE = 64
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 50  # "cap50" in the name
    sha256 = "f2302cb6ec406382ca4fb4bba1f6662e1d756ab38be13bceb27a06f986bce9f5"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 16 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A scaled logit l becomes 50
# * tanh(l / 50), before mask and softmax. A query that sees no key gives output 0 and
# lse -inf. lse is base 2.
# stage:decode, model:gemma-2-27b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeCap50H32Kv16D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_cap50_h32_kv16_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_cap50_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 50  # "cap50" in the name
    sha256 = "bf23059df6a887915f484fdeb9f690a48e8d2fb94d9887d776a5259bf1e7b432"


# Grouped-query attention over a paged KV cache, decode: 16 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query at key p sees keys
# p - 4095 ... p, a sliding window of 4096. A scaled logit l becomes 50 * tanh(l / 50),
# before mask and softmax. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:decode, model:gemma-2-9b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeCap50W4095H16Kv8D256Ps64(GqaPagedTests):
    name = "gqa_paged_decode_cap50_w4095_h16_kv8_d256_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_cap50_w4095_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 8
    HEAD_DIM = 256
    PAGE_SIZE = 64
    constants = ("window_left", "logits_soft_cap")
    WINDOW_LEFT = 4095  # "w4095" in the name
    LOGITS_SOFT_CAP = 50  # "cap50" in the name
    sha256 = "747edb8e2b6cc4cc76f59165324f7f10ceb4a17c0362ed312fe0f9c895da56cc"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 16 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query at key p sees keys
# p - 4095 ... p, a sliding window of 4096. A scaled logit l becomes 50 * tanh(l / 50),
# before mask and softmax. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:decode, model:gemma-2-27b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeCap50W4095H32Kv16D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_cap50_w4095_h32_kv16_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_cap50_w4095_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("window_left", "logits_soft_cap")
    WINDOW_LEFT = 4095  # "w4095" in the name
    LOGITS_SOFT_CAP = 50  # "cap50" in the name
    sha256 = "6da0836e671cbdbb51c1b00583a82916d348b98e2a22837c44248b924862b587"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 32 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. Queries, keys, values and
# output are float16. A query that sees no key gives output 0 and lse -inf. lse is base
# 2.
# stage:decode, model:llama-2-7b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeFp16H32Kv32D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_fp16_h32_kv32_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_FP16
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 32
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("fp16",)
    FP16 = True  # "fp16" in the name
    sha256 = "3454527fea5ef0e90fe49e27011ec6654df30aa8bf377c946aaefa62fb35ea4f"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. Queries, keys, values and
# output are float16. A query that sees no key gives output 0 and lse -inf. lse is base
# 2.
# stage:decode, model:llama-3.1-8b-awq,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeFp16H32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_fp16_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_FP16
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("fp16",)
    FP16 = True  # "fp16" in the name
    sha256 = "b4129c3e95cf92d1d95b7a2cb6b2434aaba09d4263f2cc1d584e38838e81963a"


# Grouped-query attention over a paged KV cache, decode: 16 query heads share 2 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:llama-3.1-70b, model:qwen3-32b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:4
class TestGqaPagedDecodeH16Kv2D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h16_kv2_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "5409a3552c781042f7cbeefdf0ace39ad0c99282c60304c92a6331426a5d4598"


# Grouped-query attention over a paged KV cache, decode: 16 query heads share 2 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:llama-3.1-70b, model:qwen3-32b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:4
class TestGqaPagedDecodeH16Kv2D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h16_kv2_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "855d618a7f9f97f63a414933e65c49bd8f4c988acb4c61cb4de08503d852766c"


# Grouped-query attention over a paged KV cache, decode: 16 query heads share 2 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:qwen3-next-80b-a3b, status:unverified,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH16Kv2D256Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h16_kv2_d256_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 256
    PAGE_SIZE = 64
    sha256 = "3938722a0c6259a9984bd0ba2bf41c4abd45f9d187c822e0477e6643cd453b62"


# Grouped-query attention over a paged KV cache, decode: 16 query heads share 2 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:gemma-4-26b-a4b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH16Kv2D512Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h16_kv2_d512_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 512
    PAGE_SIZE = 64
    sha256 = "6c3c44c4568b5cd0a96c9fea38eb67ca8dc63a2470567869be17f7404dce11d8"


# Grouped-query attention over a paged KV cache, decode: 20 query heads share 4 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:qwen3-14b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:2
class TestGqaPagedDecodeH20Kv4D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h20_kv4_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "49e191aa92533d4b4a0eb2348e18e2ccc8e9e97f3b46a5b9f3b6d7d112ec0eff"


# Grouped-query attention over a paged KV cache, decode: 20 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:qwen3-14b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:2
class TestGqaPagedDecodeH20Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h20_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "54364a8273b60315c5ace47515a122d776e5b1dd93a377af4d7c8668c199424a"


# Grouped-query attention over a paged KV cache, decode: 24 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:mixtral-8x22b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:2
class TestGqaPagedDecodeH24Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h24_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "0dc5d1d35e7d8ef7dba27c3f1fac471956efd3dd8dd33e207bea61e6448b0559"


# Grouped-query attention over a paged KV cache, decode: 24 query heads share 8 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:llama-3.2-3b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH24Kv8D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h24_kv8_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "43c64effa755013ffd29cdf51ee6f2bfeeb1fc6d3b0fbdff854bb8f996ca4f94"


# Grouped-query attention over a paged KV cache, decode: 24 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:llama-3.2-3b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH24Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h24_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "40ff0f888150d7d21b60e7aa1eb063e0af36cbe5a2f3aa74e395a249c5200303"


# Grouped-query attention over a paged KV cache, decode: 28 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:qwen2.5-7b, status:unverified,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH28Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h28_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 28
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "e04b137c0ab05a3bdf9957b72e6a6b7bd59f610bb3f1367e8b7d3cb71153a3cb"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 16 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:gemma-3-27b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv16D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv16_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "9e6339df71f0420335653f0e92ace6270bcddb9e3b975647a2d27c9e4bb6a22f"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 16 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:gemma-3-27b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv16D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv16_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "24ddf30f542cfd6263f74ab5ccb8a4224c4f65294a702824b0b2d37288803218"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 4 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:qwen3-30b-a3b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv4D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv4_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "930281dfe930b7f131f8422591c4c846cc4826e64ae3c110da78b8c4719524af"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:qwen3-30b-a3b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "355e66645385de431faa3fd47b87327a28f1067d7915aab5e78bd951568c05c3"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:gemma-4-31b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv4D512Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv4_d512_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 512
    PAGE_SIZE = 64
    sha256 = "6192fee1d7c001b0f97b014025cb7c745e2cdacc47fccd30cbf30ac30d919167"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 8 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:llama-3.1-8b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv8D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv8_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "b5d2e4e2ae657eb6a0a35014fcc4141b0fba52b7657b17cca8961964b6592b81"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:llama-3.1-8b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "d5ea98648176425a9165ca34c235752a327e77b0838a4ba1f17bfca7e3d13c79"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:llama-3.2-1b, status:unverified,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv8D64Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv8_d64_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 64
    PAGE_SIZE = 64
    sha256 = "250d13bddbc99ce4474cdce33b21d5a27fa8e6476557987b34970d33f0ca93e1"


# Grouped-query attention over a paged KV cache, decode: 40 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:qwen3-14b, model:llama-4-scout, status:unverified,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH40Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h40_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 40
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "29f8322850e49bf0673ed7bd2ba2123c88065a928d5cdbe472fcfb933a536f49"


# Grouped-query attention over a paged KV cache, decode: 48 query heads share 8 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:mixtral-8x22b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH48Kv8D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h48_kv8_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 48
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "bf0b1b72933809c741b06540e36e17fcaca201d389213665361192cf0e62a234"


# Grouped-query attention over a paged KV cache, decode: 48 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:minimax-m2, model:mixtral-8x22b, status:unverified,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH48Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h48_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 48
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "775d4129e536cefee21d77cb4f4928d364d2d6b9753f25c3cf6f12fdc0636dfb"


# Grouped-query attention over a paged KV cache, decode: 5 query heads share 1 KV heads.
# A page holds one token. A sequence without keys gives output 0 and lse -inf. lse is
# base 2.
# stage:decode, model:llama-4-scout,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:8
class TestGqaPagedDecodeH5Kv1D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h5_kv1_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 5
    NUM_KV_HEADS = 1
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "bf6f303998ad4770eacccd16ab15183c04c0dc29ac1f10d496049d1f69b36251"


# Grouped-query attention over a paged KV cache, decode: 64 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:qwen3-235b-a22b, status:unverified,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH64Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h64_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "e504c4868db8ca323cc449496d60321b3390ce1b189509137482018c1edffb14"


# Grouped-query attention over a paged KV cache, decode: 64 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:llama-3.1-70b, model:llama-3.3-70b, model:qwen3-32b,
# status:unverified, fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH64Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h64_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "693aff7c3f844a4bec808a0d81d02c69b31b418223ce834331e490707e956367"


# Grouped-query attention over a paged KV cache, decode: 6 query heads share 1 KV heads.
# A page holds one token. A sequence without keys gives output 0 and lse -inf. lse is
# base 2.
# stage:decode, model:minimax-m2,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:8
class TestGqaPagedDecodeH6Kv1D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h6_kv1_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 6
    NUM_KV_HEADS = 1
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "8b9db6721d0dd7b15ebe940902b512f10d0f136ca09208e6b832331483b5a7db"


# Grouped-query attention over a paged KV cache, decode: 6 query heads share 1 KV heads.
# A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it has no
# pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:minimax-m2,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:8
class TestGqaPagedDecodeH6Kv1D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h6_kv1_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 6
    NUM_KV_HEADS = 1
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "549cc069255d232d4a6a83836d26a7b391b4b99c57cebdd4b5030462608ef8ce"


# Grouped-query attention over a paged KV cache, decode: 96 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:glm-4.6, status:unverified,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH96Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h96_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 96
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "c278d1490df1ea389fe672dd459950796e8526c2025a5d65dcffd2d766754689"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. In a page, a head's tokens
# lie side by side (layout HND). A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:qwen3-30b-a3b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeHndH32Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_hnd_h32_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_HND
    reference = staticmethod(reference_gqa_paged_decode_hnd)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "7318c825075fc8a66c046fe08a64dd5729fc02f0c7a02dfa289dd623410f4e51"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. In a page, a head's tokens
# lie side by side (layout HND). A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:llama-3.1-8b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeHndH32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_hnd_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_HND
    reference = staticmethod(reference_gqa_paged_decode_hnd)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "6f35f6de532344e4a42e54754089f103adec589a2c8af724dfc5d860bb6f4819"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. The cache is stored in 8
# bits: keys are k_cache * k_scale, values are v_cache * v_scale. A query that sees no
# key gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:qwen3-30b-a3b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeKve4m3H32Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_kve4m3_h32_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_KVE4M3
    reference = staticmethod(reference_gqa_paged_decode_kve4m3)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("kve4m3",)
    KVE4M3 = True  # "kve4m3" in the name
    sha256 = "395dccbbe4ac8d0de498e9b1d2370461c545049fb880e66872533d12da9b1ad7"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. The cache is stored in 8
# bits: keys are k_cache * k_scale, values are v_cache * v_scale. A query that sees no
# key gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:llama-3.1-8b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeKve4m3H32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_kve4m3_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_KVE4M3
    reference = staticmethod(reference_gqa_paged_decode_kve4m3)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("kve4m3",)
    KVE4M3 = True  # "kve4m3" in the name
    sha256 = "72b860fd1826ea89df8cf4e47732e2aa855c3ec68e151e613b57f89892281035"


# Grouped-query attention over a paged KV cache, decode: 64 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. The cache is stored in 8
# bits: keys are k_cache * k_scale, values are v_cache * v_scale. A query that sees no
# key gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:llama-3.1-70b, model:llama-3.3-70b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeKve4m3H64Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_kve4m3_h64_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_KVE4M3
    reference = staticmethod(reference_gqa_paged_decode_kve4m3)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("kve4m3",)
    KVE4M3 = True  # "kve4m3" in the name
    sha256 = "8cc94c2eb2aff1a6c7fabfbec8f26919ba497632adcb1949e2f6c64380e34acc"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. Queries and cache are
# stored in 8 bits, with a scale for each head: queries are q * q_scale, keys are
# k_cache * k_scale, values are v_cache * v_scale. A query that sees no key gives output
# 0 and lse -inf. lse is base 2.
# stage:decode, model:llama-3.1-8b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeQe4m3Kve4m3H32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_qe4m3_kve4m3_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_QE4M3_KVE4M3
    reference = staticmethod(reference_gqa_paged_decode_qe4m3_kve4m3)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("kve4m3", "qe4m3")
    KVE4M3 = True  # "kve4m3" in the name
    QE4M3 = True  # "qe4m3" in the name
    sha256 = "db7d5b4e3b1ac13570a40f60d1a6e51427e5128fd11bc9e97ccdc74adaee762a"


# Grouped-query attention over a paged KV cache, decode: 64 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. Queries and cache are
# stored in 8 bits, with a scale for each head: queries are q * q_scale, keys are
# k_cache * k_scale, values are v_cache * v_scale. A query that sees no key gives output
# 0 and lse -inf. lse is base 2.
# stage:decode, model:llama-3.1-70b, model:llama-3.3-70b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeQe4m3Kve4m3H64Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_qe4m3_kve4m3_h64_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_QE4M3_KVE4M3
    reference = staticmethod(reference_gqa_paged_decode_qe4m3_kve4m3)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("kve4m3", "qe4m3")
    KVE4M3 = True  # "kve4m3" in the name
    QE4M3 = True  # "qe4m3" in the name
    sha256 = "a9cf03599aa27b4f7457bf39625daf737fba4bd86a3c1d51e2cd51faa2d765dc"


# Grouped-query attention over a paged KV cache, decode: 16 query heads share 2 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2. The interface is that of calls of FlashInfer's wrapper: without
# return_lse output is the one value. Solutions are installed under the name without
# return_lse.
# stage:decode, model:llama-3.1-70b, model:qwen3-32b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:4
class TestGqaPagedDecodeReturnLseH16Kv2D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_return_lse_h16_kv2_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_RETURN_LSE
    reference = staticmethod(reference_gqa_paged_decode_return_lse)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "fb6dd8742725101997e323c6f29e55fd87ad3b969011e3d1ba3829d7a0d1e291"


# Grouped-query attention over a paged KV cache, decode: 20 query heads share 4 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2. The interface is that of calls of FlashInfer's wrapper: without
# return_lse output is the one value. Solutions are installed under the name without
# return_lse.
# stage:decode, model:qwen3-14b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:2
class TestGqaPagedDecodeReturnLseH20Kv4D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_return_lse_h20_kv4_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_RETURN_LSE
    reference = staticmethod(reference_gqa_paged_decode_return_lse)
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "eeb2c61bb63dea2154ad8010936901575ac62282d1e2057ff690366a71c50624"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 4 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2. The interface is that of calls of FlashInfer's wrapper: without
# return_lse output is the one value. Solutions are installed under the name without
# return_lse.
# stage:decode, model:qwen3-30b-a3b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeReturnLseH32Kv4D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_return_lse_h32_kv4_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_RETURN_LSE
    reference = staticmethod(reference_gqa_paged_decode_return_lse)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "f31f45cafcc6c82ba071c863ea5009f4acea729bf64a9f4b6c2b1be6681c694b"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 8 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2. The interface is that of calls of FlashInfer's wrapper: without
# return_lse output is the one value. Solutions are installed under the name without
# return_lse.
# stage:decode, model:llama-3.1-8b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeReturnLseH32Kv8D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_return_lse_h32_kv8_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_RETURN_LSE
    reference = staticmethod(reference_gqa_paged_decode_return_lse)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "391d0ee50791e8a10dec6095268be72cb5b1fb646458a985273aedda223e40c3"


# Grouped-query attention over a paged KV cache, decode: 64 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A head's sink is one more
# logit, natural and unscaled, whose value is zero: it adds to the sum of exponentials,
# and to lse. A query that sees no key gives output 0 and the lse of its sink. lse is
# base 2.
# stage:decode, model:gpt-oss-120b, model:gpt-oss-20b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeSinkH64Kv8D64Ps64(GqaPagedTests):
    name = "gqa_paged_decode_sink_h64_kv8_d64_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_SINK
    reference = staticmethod(reference_gqa_paged_decode_sink)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 64
    PAGE_SIZE = 64
    sha256 = "8a52ba86d6d203ccbb6485a24d19afb62a93c598cf2643e3ef28ee78c54c5b9c"


# Grouped-query attention over a paged KV cache, decode: 64 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query at key p sees keys
# p - 127 ... p, a sliding window of 128. A head's sink is one more logit, natural and
# unscaled, whose value is zero: it adds to the sum of exponentials, and to lse. A query
# that sees no key gives output 0 and the lse of its sink. lse is base 2.
# stage:decode, model:gpt-oss-120b, model:gpt-oss-20b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeSinkW127H64Kv8D64Ps64(GqaPagedTests):
    name = "gqa_paged_decode_sink_w127_h64_kv8_d64_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_SINK
    reference = staticmethod(reference_gqa_paged_decode_sink_w127)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 64
    PAGE_SIZE = 64
    constants = ("window_left",)
    WINDOW_LEFT = 127  # "w127" in the name
    sha256 = "82636c1d0522c1529fd79901085e9dc5418617614685bedd002754d3d7e11808"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 16 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query at key p sees keys
# p - 1023 ... p, a sliding window of 1024. A query that sees no key gives output 0 and
# lse -inf. lse is base 2.
# stage:decode, model:gemma-3-27b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeW1023H32Kv16D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_w1023_h32_kv16_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_w1023_h32_kv16_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("window_left",)
    WINDOW_LEFT = 1023  # "w1023" in the name
    sha256 = "2ff984cfa6379a0ead36f17e319e7d71345e92d8c172bc6779221bf5b6884b76"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 16 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query at key p sees keys
# p - 1023 ... p, a sliding window of 1024. A query that sees no key gives output 0 and
# lse -inf. lse is base 2.
# stage:decode, model:gemma-4-31b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeW1023H32Kv16D256Ps64(GqaPagedTests):
    name = "gqa_paged_decode_w1023_h32_kv16_d256_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_w1023_h32_kv16_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 256
    PAGE_SIZE = 64
    constants = ("window_left",)
    WINDOW_LEFT = 1023  # "w1023" in the name
    sha256 = "b1a5d460b98ad9c0c3c44db496a4c041987e60a21f2fe99ac5c3b0627004b83e"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 32 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query at key p sees keys
# p - 4095 ... p, a sliding window of 4096. A query that sees no key gives output 0 and
# lse -inf. lse is base 2.
# stage:decode, model:olmo-3-7b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeW4095H32Kv32D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_w4095_h32_kv32_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_w4095_h32_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 32
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("window_left",)
    WINDOW_LEFT = 4095  # "w4095" in the name
    sha256 = "9619c3d25bd523b4611cede1ce4a259449f933cb4ba0e9ac0191e64d0a54099e"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query at key p sees keys
# p - 4095 ... p, a sliding window of 4096. A query that sees no key gives output 0 and
# lse -inf. lse is base 2.
# stage:decode, model:mistral-7b-v0.1,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeW4095H32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_w4095_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_w4095_h32_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("window_left",)
    WINDOW_LEFT = 4095  # "w4095" in the name
    sha256 = "ffada89bd906a6a6c76ffb03132c2b4a76e08c8c2bb5e43342b8d23ed01fcb7b"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 32 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. ALiBi adds slope * (j - p) to the scaled logit of the key at j
# for a query at p, which is 0 for its own key. With n the largest power of 2 up to the
# number of query heads, slope is 2 ** (-8 * (h + 1) / n) for head h < n, and 2 ** (-4 *
# (2 * (h - n) + 1) / n) for the others. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:mpt-7b, model:bloom-7b1,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalAlibiH32Kv32D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_alibi_h32_kv32_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_alibi)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 32
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("alibi",)
    ALIBI = True  # "alibi" in the name
    sha256 = "2fb87a822c33426be35901d70a3748a6dbe84f51ec2e86673979226eb7e22e23"


# Grouped-query attention over a paged KV cache, prefill: 40 query heads share 40 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. ALiBi adds slope * (j - p) to the scaled logit of the key at j
# for a query at p, which is 0 for its own key. With n the largest power of 2 up to the
# number of query heads, slope is 2 ** (-8 * (h + 1) / n) for head h < n, and 2 ** (-4 *
# (2 * (h - n) + 1) / n) for the others. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:baichuan2-13b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalAlibiH40Kv40D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_alibi_h40_kv40_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_alibi)
    NUM_QO_HEADS = 40
    NUM_KV_HEADS = 40
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("alibi",)
    ALIBI = True  # "alibi" in the name
    sha256 = "3db5a8bd54ec740788196c2d06cb85a82ac3eb963c5d7ff9d6ed1296e6b415fd"


# Grouped-query attention over a paged KV cache, prefill: 48 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A scaled logit l becomes 30 * tanh(l / 30), before mask and
# softmax. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:grok-1,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalCap30H48Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_cap30_h48_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_cap30_h48_kv8_ps64)
    NUM_QO_HEADS = 48
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 30  # "cap30" in the name
    sha256 = "e44db792ee650069a97efac20bf8f9003d1e2df2a4a198c8a03c569765b4dfca"


# Grouped-query attention over a paged KV cache, prefill: 16 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A scaled logit l becomes 50 * tanh(l / 50), before mask and
# softmax. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:gemma-2-9b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalCap50H16Kv8D256Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_cap50_h16_kv8_d256_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_cap50_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 8
    HEAD_DIM = 256
    PAGE_SIZE = 64
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 50  # "cap50" in the name
    sha256 = "d28fe262ba9412157707a4c949fc0e6fb0cdebb29a91ad74265e332593b87f10"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 16 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A scaled logit l becomes 50 * tanh(l / 50), before mask and
# softmax. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:gemma-2-27b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalCap50H32Kv16D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_cap50_h32_kv16_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_cap50_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 50  # "cap50" in the name
    sha256 = "446f386b9a4db9ed3574e6a2156f634dc0d190aab148a5700672e382f242171c"


# Grouped-query attention over a paged KV cache, prefill: 16 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 4095 ... p, a sliding window of
# 4096. A scaled logit l becomes 50 * tanh(l / 50), before mask and softmax. A query
# that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:gemma-2-9b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalCap50W4095H16Kv8D256Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_cap50_w4095_h16_kv8_d256_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_cap50_w4095_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 8
    HEAD_DIM = 256
    PAGE_SIZE = 64
    constants = ("window_left", "logits_soft_cap")
    WINDOW_LEFT = 4095  # "w4095" in the name
    LOGITS_SOFT_CAP = 50  # "cap50" in the name
    sha256 = "6a4169915e0fd075fe4660ad5e1e398ed751d4480f43bc95a466bd9b93fb9f0c"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 16 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 4095 ... p, a sliding window of
# 4096. A scaled logit l becomes 50 * tanh(l / 50), before mask and softmax. A query
# that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:gemma-2-27b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalCap50W4095H32Kv16D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_cap50_w4095_h32_kv16_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_cap50_w4095_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("window_left", "logits_soft_cap")
    WINDOW_LEFT = 4095  # "w4095" in the name
    LOGITS_SOFT_CAP = 50  # "cap50" in the name
    sha256 = "63ffba829fd8a74da4ace7106db701b284c0e02275e64a9490036ce3e03e1b56"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 32 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. Queries, keys, values and output are float16. A query that
# sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:llama-2-7b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalFp16H32Kv32D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_fp16_h32_kv32_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_FP16
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 32
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("fp16",)
    FP16 = True  # "fp16" in the name
    sha256 = "7dff6a8cd85c819e227c7579e3b5e15d365e152270e585abc4b38afda966750b"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. Queries, keys, values and output are float16. A query that
# sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.1-8b-awq,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalFp16H32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_fp16_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_FP16
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("fp16",)
    FP16 = True  # "fp16" in the name
    sha256 = "100f653d371e09d82431fe6c571cda68aeccd5f1bb54c4a2adbcd5957ae8e4cf"


# Grouped-query attention over a paged KV cache, causal prefill: 16 query heads share 1
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:qwen3-235b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:4
class TestGqaPagedPrefillCausalH16Kv1D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h16_kv1_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 1
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "70edf1ca108e89868430e5243f09940f62c2cf2e6929e7d9bac59ef5adafd976"


# Grouped-query attention over a paged KV cache, causal prefill: 16 query heads share 2
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.1-70b, model:qwen3-32b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:4
class TestGqaPagedPrefillCausalH16Kv2D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h16_kv2_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "d86a4b70d99e5516d6fde801c7ece4c2c4b0c9021f7f147089bc60309feb46ca"


# Grouped-query attention over a paged KV cache, causal prefill: 16 query heads share 2
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:llama-3.1-70b, model:qwen3-32b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:4
class TestGqaPagedPrefillCausalH16Kv2D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h16_kv2_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "8c7d04bd87078868c60dded24a74687c118790a1302a1b70128f5f6f1ca26674"


# Grouped-query attention over a paged KV cache, prefill: 16 query heads share 2 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:qwen3-next-80b-a3b, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH16Kv2D256Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h16_kv2_d256_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 256
    PAGE_SIZE = 64
    sha256 = "3100eb16603face2ad3fd159b1e040827ff3565c1f97702418a90258c30f81c6"


# Grouped-query attention over a paged KV cache, prefill: 16 query heads share 2 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:gemma-4-26b-a4b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH16Kv2D512Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h16_kv2_d512_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 512
    PAGE_SIZE = 64
    sha256 = "a69ffbcadd23131cce8f90a160fed0a489ed45903597eeaea6196a7738877cc6"


# Grouped-query attention over a paged KV cache, causal prefill: 20 query heads share 4
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:qwen3-14b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:2
class TestGqaPagedPrefillCausalH20Kv4D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h20_kv4_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "1b5a9c3681bd7264f4a9d7faa569e61b976f412f2f0075ead6b0488325447574"


# Grouped-query attention over a paged KV cache, causal prefill: 20 query heads share 4
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:qwen3-14b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:2
class TestGqaPagedPrefillCausalH20Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h20_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "903a3588c6217055b3c43781ce6bb50185a7123472bfc3edf9e76a32eba92cbd"


# Grouped-query attention over a paged KV cache, causal prefill: 24 query heads share 4
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper,
# model:mixtral-8x22b, tp:2
class TestGqaPagedPrefillCausalH24Kv4D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h24_kv4_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "97f811219e9d5f3ced8edb720936c12113d656c1aa4de75a0f808ad720a5f678"


# Grouped-query attention over a paged KV cache, causal prefill: 24 query heads share 4
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper,
# model:mixtral-8x22b, tp:2
class TestGqaPagedPrefillCausalH24Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h24_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "8459407804543bbca772640e69bfe42e9c7c8433ad4ff607951a9e44a92b9b4c"


# Grouped-query attention over a paged KV cache, causal prefill: 24 query heads share 8
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.2-3b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH24Kv8D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h24_kv8_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "1a44f5b784f4ffa9afa0e20e8bd232530791ebd838042be5b41e7b5589b28185"


# Grouped-query attention over a paged KV cache, causal prefill: 24 query heads share 8
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:llama-3.2-3b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH24Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h24_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "f0e421e7e679fa16339f4104a1b87f2ddefc1da603372d7a854da5cf8c71e96a"


# Grouped-query attention over a paged KV cache, prefill: 28 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:qwen2.5-7b, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH28Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h28_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 28
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "c43b81584572f554e5c1d021dd33d8ecba728f0dfb5fa5617f4e37c3e4215f2a"


# Grouped-query attention over a paged KV cache, causal prefill: 32 query heads share 16
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:gemma-3-27b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv16D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv16_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "561bca8c7995b51eda0e6d4cd6fd4ca639f3fa3c6b1ace684773d36711c68f75"


# Grouped-query attention over a paged KV cache, causal prefill: 32 query heads share 16
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:gemma-3-27b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv16D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv16_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "d72d5363ccc737818117ccd808b9cd7316d8db7961c1d6c3a6f88513862dafde"


# Grouped-query attention over a paged KV cache, causal prefill: 32 query heads share 4
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:qwen3-30b-a3b,
# fi_api:flashinfer.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv4D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv4_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "f5683e16b7ae9b49aff9b7e21b34d7e6be51024074d1c6bdb554638e63b2ccc1"


# Grouped-query attention over a paged KV cache, causal prefill: 32 query heads share 4
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:qwen3-30b-a3b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "f10e8dc4e27547754450b972704e115d7b49d0b2e27b4ed1f1cc2ef5bb7b0159"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:gemma-4-31b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv4D512Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv4_d512_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 512
    PAGE_SIZE = 64
    sha256 = "49ae6ca407e6174700a8af311f8b3ac547b1ec12af427c5abd7b5cf8d592e056"


# Grouped-query attention over a paged KV cache, causal prefill: 32 query heads share 8
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.1-8b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv8D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv8_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "f0e2b5e52deec37ba687a4e8daf4b1ea5a78345ad080b9e549b707737e33c3b7"


# Grouped-query attention over a paged KV cache, causal prefill: 32 query heads share 8
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:llama-3.1-8b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "59a44586cd1178af68224699579daea00142313149dcc9e3fc6937115682a75c"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:llama-3.2-1b, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv8D64Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv8_d64_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 64
    PAGE_SIZE = 64
    sha256 = "9b78d6dcdd4e0e03fa79dce2877920ac0db5e85c3138aff841adbb95737902a9"


# Grouped-query attention over a paged KV cache, causal prefill: 40 query heads share 10
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:phi-4-14b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH40Kv10D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h40_kv10_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 40
    NUM_KV_HEADS = 10
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "ae1e3bd8b7656054407a883f394bc881713d302f123702b93cf408257fca5a70"


# Grouped-query attention over a paged KV cache, prefill: 40 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:qwen3-14b, model:llama-4-scout, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH40Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h40_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 40
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "912c5fa789c8878cfd6b9e30d17ff7059b66a725674e83a082b7b137e53eba08"


# Grouped-query attention over a paged KV cache, prefill: 48 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:minimax-m2, model:mixtral-8x22b, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH48Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h48_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 48
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "e117883b2b74716cfa6090690bf69ecb15b882353ba7e6557953818e10ac097c"


# Grouped-query attention over a paged KV cache, causal prefill: 5 query heads share 1
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:llama-4-scout,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:8
class TestGqaPagedPrefillCausalH5Kv1D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h5_kv1_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 5
    NUM_KV_HEADS = 1
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "e922de4c3eb5c86d2f0dd96d6268439795dc6b46d06c7abd9f33106f6b7adb19"


# Grouped-query attention over a paged KV cache, causal prefill: 5 query heads share 1
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:llama-4-scout,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:8
class TestGqaPagedPrefillCausalH5Kv1D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h5_kv1_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 5
    NUM_KV_HEADS = 1
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "0ed82da8219601ce09538473c60f4b2a2a8663b8310f43a77ffd7d78e6a3b926"


# Grouped-query attention over a paged KV cache, prefill: 64 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:qwen3-235b-a22b, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH64Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h64_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "2821f68e4e6bf1815c8c14cedb39fef8a2bb8f696282f94a41c9d84c1479e733"


# Grouped-query attention over a paged KV cache, prefill: 64 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:llama-3.1-70b, model:llama-3.3-70b, model:qwen3-32b,
# status:unverified, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH64Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h64_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "009aee4725c8546a34e6a2843aee7bfcad447900e3d93f4e25dd6761049800ff"


# Grouped-query attention over a paged KV cache, causal prefill: 6 query heads share 1
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:minimax-m2,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:8
class TestGqaPagedPrefillCausalH6Kv1D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h6_kv1_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 6
    NUM_KV_HEADS = 1
    HEAD_DIM = 128
    PAGE_SIZE = 1
    sha256 = "ad7ddf1a8d99c6d436a2d42373f303542773bc479ea8a96fe40ea4d268b44da5"


# Grouped-query attention over a paged KV cache, causal prefill: 6 query heads share 1
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:minimax-m2,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:8
class TestGqaPagedPrefillCausalH6Kv1D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h6_kv1_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 6
    NUM_KV_HEADS = 1
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "20c291889a9d6152c5d86deee6697e2e3a81f2cac2c5303368685ca094c7b898"


# Grouped-query attention over a paged KV cache, prefill: 96 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:glm-4.6, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH96Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h96_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 96
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "ebea579179844e73bee82124166b2a379e846956c358609415873363705ab947"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. In a page, a head's tokens lie side by side (layout HND). A
# query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:qwen3-30b-a3b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalHndH32Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_hnd_h32_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_HND
    reference = staticmethod(reference_gqa_paged_prefill_causal_hnd)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "8ba5836ae5a9d837f3e814d6a0417d16b43a168657feabe0d7b9cb53d1fd948e"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. In a page, a head's tokens lie side by side (layout HND). A
# query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.1-8b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalHndH32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_hnd_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_HND
    reference = staticmethod(reference_gqa_paged_prefill_causal_hnd)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    sha256 = "c380d8c15388258615297a902c0e26763c7a0338769d2fb30c0362639a98f362"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. The cache is stored in 8 bits: keys are k_cache * k_scale,
# values are v_cache * v_scale. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:qwen3-30b-a3b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalKve4m3H32Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_kve4m3_h32_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_KVE4M3
    reference = staticmethod(reference_gqa_paged_prefill_causal_kve4m3)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("kve4m3",)
    KVE4M3 = True  # "kve4m3" in the name
    sha256 = "9d47f74fba80e730b34d0455c33353546cd07d8de90306da8a7472cb850c1274"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. The cache is stored in 8 bits: keys are k_cache * k_scale,
# values are v_cache * v_scale. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:llama-3.1-8b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalKve4m3H32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_kve4m3_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_KVE4M3
    reference = staticmethod(reference_gqa_paged_prefill_causal_kve4m3)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("kve4m3",)
    KVE4M3 = True  # "kve4m3" in the name
    sha256 = "195d5ec0b02cbf8442372094e27d373353986dc9cd3045f78628620ca66da362"


# Grouped-query attention over a paged KV cache, prefill: 64 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. The cache is stored in 8 bits: keys are k_cache * k_scale,
# values are v_cache * v_scale. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:llama-3.1-70b, model:llama-3.3-70b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalKve4m3H64Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_kve4m3_h64_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_KVE4M3
    reference = staticmethod(reference_gqa_paged_prefill_causal_kve4m3)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("kve4m3",)
    KVE4M3 = True  # "kve4m3" in the name
    sha256 = "223eb200e22163289c223eefb1a1ddac70fbf14261b59c3736b21fd0298d0a02"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. Queries and cache are stored in 8 bits, with a scale for each
# head: queries are q * q_scale, keys are k_cache * k_scale, values are v_cache *
# v_scale. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.1-8b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalQe4m3Kve4m3H32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_qe4m3_kve4m3_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_QE4M3_KVE4M3
    reference = staticmethod(reference_gqa_paged_prefill_causal_qe4m3_kve4m3)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("kve4m3", "qe4m3")
    KVE4M3 = True  # "kve4m3" in the name
    QE4M3 = True  # "qe4m3" in the name
    sha256 = "39adfe2f1c4f4356de7225d86b6b3c5f1add3a60a85245a3e549e48f300343d0"


# Grouped-query attention over a paged KV cache, prefill: 64 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. Queries and cache are stored in 8 bits, with a scale for each
# head: queries are q * q_scale, keys are k_cache * k_scale, values are v_cache *
# v_scale. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.1-70b, model:llama-3.3-70b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalQe4m3Kve4m3H64Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_qe4m3_kve4m3_h64_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_QE4M3_KVE4M3
    reference = staticmethod(reference_gqa_paged_prefill_causal_qe4m3_kve4m3)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("kve4m3", "qe4m3")
    KVE4M3 = True  # "kve4m3" in the name
    QE4M3 = True  # "qe4m3" in the name
    sha256 = "9285b0481a78e3a609a1945ff1831bcd00340bd8320c697e26389c379661623c"


# Grouped-query attention over a paged KV cache, prefill: 64 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A head's sink is one more logit, natural and unscaled, whose
# value is zero: it adds to the sum of exponentials, and to lse. A query that sees no
# key gives output 0 and the lse of its sink. lse is base 2.
# stage:prefill, model:gpt-oss-120b, model:gpt-oss-20b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalSinkH64Kv8D64Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_sink_h64_kv8_d64_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_SINK
    reference = staticmethod(reference_gqa_paged_prefill_causal_sink)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 64
    PAGE_SIZE = 64
    sha256 = "de58f6d4394da076cd33fb85caa738627fd9e0ac85c63b3a1e6e82c9590a7875"


# Grouped-query attention over a paged KV cache, prefill: 64 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 127 ... p, a sliding window of
# 128. A head's sink is one more logit, natural and unscaled, whose value is zero: it
# adds to the sum of exponentials, and to lse. A query that sees no key gives output 0
# and the lse of its sink. lse is base 2.
# stage:prefill, model:gpt-oss-120b, model:gpt-oss-20b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalSinkW127H64Kv8D64Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_sink_w127_h64_kv8_d64_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_SINK
    reference = staticmethod(reference_gqa_paged_prefill_causal_sink_w127)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 64
    PAGE_SIZE = 64
    constants = ("window_left",)
    WINDOW_LEFT = 127  # "w127" in the name
    sha256 = "220a0ea332ab6a3eb89e69ab079503bb1bc07775f50337e5a0799afc3354567a"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 16 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 1023 ... p, a sliding window of
# 1024. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:gemma-3-27b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalW1023H32Kv16D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_w1023_h32_kv16_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_w1023_h32_kv16_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("window_left",)
    WINDOW_LEFT = 1023  # "w1023" in the name
    sha256 = "d479d2e862f4744e52a71a56be875cd966776fde5ab80c20c90fba24cd89513c"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 16 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 1023 ... p, a sliding window of
# 1024. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:gemma-4-31b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalW1023H32Kv16D256Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_w1023_h32_kv16_d256_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_w1023_h32_kv16_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 256
    PAGE_SIZE = 64
    constants = ("window_left",)
    WINDOW_LEFT = 1023  # "w1023" in the name
    sha256 = "dd18169fe22f015e5d2300bc7aad0bf02c7686c91e89240e6e98657dccee78e2"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 32 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 4095 ... p, a sliding window of
# 4096. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:olmo-3-7b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalW4095H32Kv32D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_w4095_h32_kv32_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_w4095_h32_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 32
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("window_left",)
    WINDOW_LEFT = 4095  # "w4095" in the name
    sha256 = "7788b6a0382acd96a0a3a990c9c681bbfff7bf640f9785edf4682cb90f5c7ca6"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 4095 ... p, a sliding window of
# 4096. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:mistral-7b-v0.1,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalW4095H32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_w4095_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_causal_w4095_h32_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("window_left",)
    WINDOW_LEFT = 4095  # "w4095" in the name
    sha256 = "fb00b26c903669fbf33e119965b64f6588ef361561bbfcf19adc11b7bde52a04"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. Query i of a sequence sees its key j where element i * kv_len + j of the
# sequence's part of custom_mask is true; there is no other mask. So the tokens of a
# tree are verified at once, each seeing its ancestors. A query that sees no key gives
# output 0 and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.1-8b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCustomMaskH32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_custom_mask_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CUSTOM_MASK
    reference = staticmethod(reference_gqa_paged_prefill_custom_mask)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("custom_mask",)
    CUSTOM_MASK = True  # "custom" in the name
    sha256 = "8ed4b263fa6a74430e71578299a38934a7e25a0c1f9b0496b340015259eeb9e8"


# Grouped-query attention over a paged KV cache, prefill: 64 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. Query i of a sequence sees its key j where element i * kv_len + j of the
# sequence's part of custom_mask is true; there is no other mask. So the tokens of a
# tree are verified at once, each seeing its ancestors. A query that sees no key gives
# output 0 and lse -inf. lse is base 2.
# stage:prefill, model:qwen3-235b-a22b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCustomMaskH64Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_custom_mask_h64_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CUSTOM_MASK
    reference = staticmethod(reference_gqa_paged_prefill_custom_mask)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("custom_mask",)
    CUSTOM_MASK = True  # "custom" in the name
    sha256 = "d2d458cbaae09e01472d42c2fa3ff1d6b099c986534f9bc56a7b316ef9322489"


# Grouped-query attention over a paged KV cache, prefill: 64 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. Query i of a sequence sees its key j where element i * kv_len + j of the
# sequence's part of custom_mask is true; there is no other mask. So the tokens of a
# tree are verified at once, each seeing its ancestors. A query that sees no key gives
# output 0 and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.1-70b, model:llama-3.3-70b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCustomMaskH64Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_custom_mask_h64_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CUSTOM_MASK
    reference = staticmethod(reference_gqa_paged_prefill_custom_mask)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("custom_mask",)
    CUSTOM_MASK = True  # "custom" in the name
    sha256 = "bd408542d51cffc8c7eed1670f35ab150e928a8fe5ccc91405ddf0a1295c10f1"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. There is no mask: every query sees all keys. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.2-11b-vision,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillNoncausalH32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_noncausal_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    reference = staticmethod(reference_gqa_paged_prefill_noncausal)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 64
    constants = ("noncausal",)
    NONCAUSAL = True  # "noncausal" in the name
    sha256 = "2364c0109f807f42ba9a098b8e021ef6911b97830f531f404e7808e30fcfb49e"


if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
