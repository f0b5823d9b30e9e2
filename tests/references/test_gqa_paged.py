"""Reference tests of op_type gqa_paged.

Rendered: don't edit. `gen-tests --op-type gqa_paged` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import sys
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
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import dtype_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.attention.caches, generator.ops.attention.oracle,
# generator.ops.attention.variant
# bounds: generator.ops.attention.tolerances
# relations: generator.ops.attention.relations

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
INTERFACE_GQA_PAGED_DECODE_FP16 = INTERFACE_GQA_PAGED_DECODE_PS64.but(
    inputs={
        "q": "float16[batch_size, num_qo_heads, head_dim]",
        "k_cache": "float16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "float16[num_pages, page_size, num_kv_heads, head_dim]",
    },
    outputs={"output": "float16[batch_size, num_qo_heads, head_dim]"},
)
INTERFACE_GQA_PAGED_DECODE_PS1 = INTERFACE_GQA_PAGED_DECODE_PS64.but(
    without=("kv_last_page_len",),
)
INTERFACE_GQA_PAGED_DECODE_HND = INTERFACE_GQA_PAGED_DECODE_PS64.but(
    inputs={
        "k_cache": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
        "v_cache": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
    },
)
INTERFACE_GQA_PAGED_DECODE_KVE4M3 = INTERFACE_GQA_PAGED_DECODE_PS64.but(
    inputs={
        "k_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "k_scale": "float32",
        "v_scale": "float32",
    },
    also=("k_scale > 0", "v_scale > 0"),
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
INTERFACE_GQA_PAGED_DECODE_RETURN_LSE = INTERFACE_GQA_PAGED_DECODE_PS1.but(
    inputs={"sm_scale": "float32", "return_lse": "bool"},
)
INTERFACE_GQA_PAGED_DECODE_SINK = INTERFACE_GQA_PAGED_DECODE_PS64.but(
    inputs={
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "sinks": "float32[num_qo_heads]",
    },
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
INTERFACE_GQA_PAGED_PREFILL_CAUSAL_FP16 = INTERFACE_GQA_PAGED_PREFILL.but(
    inputs={
        "q": "float16[total_q, num_qo_heads, head_dim]",
        "k_cache": "float16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "float16[num_pages, page_size, num_kv_heads, head_dim]",
    },
    outputs={"output": "float16[total_q, num_qo_heads, head_dim]"},
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL = INTERFACE_GQA_PAGED_PREFILL.but(
    constraints=(
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
    without=("kv_last_page_len",),
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL_HND = INTERFACE_GQA_PAGED_PREFILL.but(
    inputs={
        "k_cache": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
        "v_cache": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
    },
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL_KVE4M3 = INTERFACE_GQA_PAGED_PREFILL.but(
    inputs={
        "k_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "k_scale": "float32",
        "v_scale": "float32",
    },
    also=("k_scale > 0", "v_scale > 0"),
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL_QE4M3_KVE4M3 = INTERFACE_GQA_PAGED_PREFILL.but(
    inputs={
        "q": "float8_e4m3fn[total_q, num_qo_heads, head_dim]",
        "k_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "q_scale": "float32[num_qo_heads]",
        "k_scale": "float32[num_kv_heads]",
        "v_scale": "float32[num_kv_heads]",
    },
    also=("q_scale.min() > 0", "k_scale.min() > 0", "v_scale.min() > 0"),
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL_SINK = INTERFACE_GQA_PAGED_PREFILL.but(
    inputs={
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "sinks": "float32[num_qo_heads]",
    },
)
INTERFACE_GQA_PAGED_PREFILL_CUSTOM_MASK = INTERFACE_GQA_PAGED_PREFILL.but(
    inputs={
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "custom_mask": "bool[mask_len]",
    },
    also=(
        "mask_len == sum((qo_indptr[b + 1] - qo_indptr[b]) * ((kv_indptr[b + 1] - kv_indptr[b] - 1) * page_size + kv_last_page_len[b]) for b in range(batch_size) if kv_indptr[b + 1] > kv_indptr[b])",
    ),
)

# ---- the tests


class GqaPagedTests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of gqa_paged share."""

    op_type = "gqa_paged"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.
# Reasons in short; `TOLERANCES`, or the module of bounds named above, derives them in full:
# (1) one rounding to bfloat16.
# (2) the kernel multiplies weights in bfloat16.
# (3) the plain kernel's output, of weights in bfloat16, is rounded, multiplied by the
# share that the sinks leave and rounded again, and run() rounds once.
# (4) the kernel's ALiBi grows with a key's place, where run()'s falls with its distance
# from the query.
# (5) the float32 sum of a logit's 576 products is off by sqrt(576/2)·0.4·2^-24 of their
# deviation of 2, 8.1e-7 root mean square and 4.9e-6 at most, which is 6 times that,
# 7e-6 in base 2.
# (6) a CPU and a GPU add the products of a logit in different orders, as a GPU does for
# rows that are views.
# (7) fa2 sums the probabilities after rounding them to bfloat16, whose unit roundoff is
# 2^-8.
# (8) a factor or an offset of 7.6e-06 is allowed.
# (9) the 256 products of a logit cancel from Σ|q·k|·sm_scale·log2(e) = 800, and tensor
# cores add them in float32 by truncation.
# (10) cuda-cores caps a logit by tanh.approx.f32, off by 2^-11 of itself.
# (11) fa3 caps a logit by tanh.approx.f32, whose relative error PTX's manual bounds by
# 2^-11.
# (12) cuda-cores caps a logit by tanh.approx.f32, whose relative error PTX's manual
# bounds by 2^-11.
# (13) one rounding to float16.
# (14) the kernel multiplies weights in float16, off by 2^-11/sqrt(3)/1.44 = 2e-4 of
# themselves, root mean square.
# (15) fa2 sums the probabilities after rounding them to float16.
# (16) the wrappers round the output to bfloat16, multiply it by v_scale and round it
# again, and the reference rounds once.
# (17) fa3 rounds 448 times each probability to e4m3.
# (18) 0.95 of the elements are within atol and rtol, the cosine is 0.999 or more, the
# norm is 0.995 to 1.005 times the expected one.
# (19) tensor cores add the products of e4m3 by 13 bits below the largest.
# (20) a factor or an offset of 0.00012 is allowed.


# Grouped-query attention over a paged KV cache, decode: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The query stands at its sequence's last key. ALiBi adds
# slope * (j - p) to the scaled logit of the key at j for a query at p, which is 0 for
# its own key. With n the largest power of 2 up to the number of query heads, slope is 2
# ** (-8 * (h + 1) / n) for head h < n, and 2 ** (-4 * (2 * (h - n) + 1) / n) for the
# others. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:decode, fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
# Tolerances:
#   output  source                            rtol      atol     NMSE   reason
#   output  oracle                            0.00391   1e-05*   1e-05  (1)
#   output  flashinfer/fa2, fa3               0.01      0.008    2e-05  (2)
#   output  flashinfer/fa2-plain, fa3-plain   0.01      0.008    2e-05  (3)
#   output  flashinfer                        0.01      0.008    2e-05  default
#   lse     flashinfer/cuda-cores             1e-05     0.001    1e-07  (4)
#   lse     oracle                            2.38e-07  1e-05*   1e-11  (5)
#   lse     metamorphic:cpu                   4.77e-07  2e-05*   1e-07  (6)
#   lse     metamorphic:strided               4.77e-07  2e-05*   1e-07  (6)
#   lse     flashinfer/fa2, fa2-plain         0         0.00562  1e-06  (7) (8)
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00019  1e-07  (9)
#   lse     flashinfer                        1e-05     1e-05    1e-07  default
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


class GqaPagedDecodeAlibiBase(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_alibi)
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"head_dim": 128, "page_size": 64}
    constants = ("alibi",)
    ALIBI = True  # "alibi" in the name

class TestGqaPagedDecodeAlibiH32Kv32D128Ps64(GqaPagedDecodeAlibiBase):
    name = "gqa_paged_decode_alibi_h32_kv32_d128_ps64"  # model:mpt-7b, model:bloom-7b1
    axes = {"num_qo_heads": 32, "num_kv_heads": 32}
    sha256 = "7d9f110eca5d32d63bf903d4aab4dcb22dfa765779d473952bff91ccf6de80e9"

class TestGqaPagedDecodeAlibiH40Kv40D128Ps64(GqaPagedDecodeAlibiBase):
    name = "gqa_paged_decode_alibi_h40_kv40_d128_ps64"  # model:baichuan2-13b
    axes = {"num_qo_heads": 40, "num_kv_heads": 40}
    sha256 = "a49f02fe6c3ec0d91a166303535066c914f2ae9d4f7cc67ace968bbb080b719e"


# Grouped-query attention over a paged KV cache, decode: 48 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A scaled logit l becomes 30
# * tanh(l / 30), before mask and softmax. A query that sees no key gives output 0 and
# lse -inf. lse is base 2.
# stage:decode, model:grok-1,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
# Tolerances:
#   output  source                           rtol      atol     NMSE      reason
#   output  oracle                           0.00391   1e-05*   1e-05     (1)
#   output  flashinfer/fa2, fa3              0.01      0.008    2e-05     (2)
#   output  flashinfer/fa2-plain, fa3-plain  0.01      0.008    2e-05     (3)
#   output  flashinfer/cuda-cores            0.01      0.008    2e-05     (10)
#   output  flashinfer                       0.01      0.008    2e-05     default
#   lse     oracle                           2.38e-07  1e-05*   1e-11     (5)
#   lse     metamorphic:cpu                  4.77e-07  2e-05*   1e-07     (6)
#   lse     metamorphic:strided              4.77e-07  2e-05*   1e-07     (6)
#   lse     flashinfer/fa2, fa2-plain        0         0.00562  1e-06     (7) (8)
#   lse     flashinfer/fa3                   0.000488  1e-05    2.38e-07  (11)
#   lse     flashinfer/cuda-cores            0.000488  1e-05    2.38e-07  (12)
#   lse     flashinfer                       1e-05     1e-05    1e-07     default
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


class TestGqaPagedDecodeCap30H48Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_cap30_h48_kv8_d128_ps64"
    reference = staticmethod(reference_gqa_paged_decode_cap30_h48_kv8_ps64)
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 48, "num_kv_heads": 8, "head_dim": 128, "page_size": 64}
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 30  # "cap30" in the name
    sha256 = "91a95c5632574a78885c8aa447939891906039fcd68db8b092627026b6850a7d"


# Grouped-query attention over a paged KV cache, decode: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The query stands at its sequence's last key. A scaled
# logit l becomes 50 * tanh(l / 50), before mask and softmax. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:decode, fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
# Tolerances: those of reference_gqa_paged_decode_cap30_h48_kv8_ps64.
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


class GqaPagedDecodeCap50Ps64Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_cap50_ps64)
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"page_size": 64}
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 50  # "cap50" in the name

class TestGqaPagedDecodeCap50H16Kv8D256Ps64(GqaPagedDecodeCap50Ps64Base):
    name = "gqa_paged_decode_cap50_h16_kv8_d256_ps64"  # model:gemma-2-9b
    axes = {"num_qo_heads": 16, "num_kv_heads": 8, "head_dim": 256}
    sha256 = "bde5214106f10353b199331b4545ef6796af7129a14b84003a2ff81b25258ba9"

class TestGqaPagedDecodeCap50H32Kv16D128Ps64(GqaPagedDecodeCap50Ps64Base):
    name = "gqa_paged_decode_cap50_h32_kv16_d128_ps64"  # model:gemma-2-27b
    axes = {"num_qo_heads": 32, "num_kv_heads": 16, "head_dim": 128}
    sha256 = "2d89784bb732fdf3856955aee640c626a33cdddee484e4a8d7dd01883fee29d0"


# Grouped-query attention over a paged KV cache, decode: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The query stands at its sequence's last key. A query at
# key p sees keys p - 4095 ... p, a sliding window of 4096. A scaled logit l becomes 50
# * tanh(l / 50), before mask and softmax. A query that sees no key gives output 0 and
# lse -inf. lse is base 2.
# stage:decode, fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
# Tolerances: those of reference_gqa_paged_decode_cap30_h48_kv8_ps64.
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


class GqaPagedDecodeCap50W4095Ps64Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_cap50_w4095_ps64)
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"page_size": 64}
    constants = ("window_left", "logits_soft_cap")
    WINDOW_LEFT = 4095  # "w4095" in the name
    LOGITS_SOFT_CAP = 50  # "cap50" in the name

class TestGqaPagedDecodeCap50W4095H16Kv8D256Ps64(GqaPagedDecodeCap50W4095Ps64Base):
    name = "gqa_paged_decode_cap50_w4095_h16_kv8_d256_ps64"  # model:gemma-2-9b
    axes = {"num_qo_heads": 16, "num_kv_heads": 8, "head_dim": 256}
    sha256 = "3bbcbb44ff2e2e43da7397cad0f865d572527391b9a353f6c7e348225eb5f4a4"

class TestGqaPagedDecodeCap50W4095H32Kv16D128Ps64(GqaPagedDecodeCap50W4095Ps64Base):
    name = "gqa_paged_decode_cap50_w4095_h32_kv16_d128_ps64"  # model:gemma-2-27b
    axes = {"num_qo_heads": 32, "num_kv_heads": 16, "head_dim": 128}
    sha256 = "8f65c8dd0a781d1fcb50d31f545e04aa5850b4c9334724c2331f360bbf931678"


# Grouped-query attention over a paged KV cache, decode: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. lse is base 2.
# stage:decode, fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper
# Tolerances of gqa_paged_decode_fp16_h32_kv32_d128_ps64 and 1 more:
#   output  source                            rtol      atol      NMSE     reason
#   output  oracle in extreme-logits          0.000488  0.0002    2e-07    (13)
#   output  oracle                            0.000488  1e-05*    1.6e-07  (13)
#   output  flashinfer/fa2, fa3               0.00125   0.001     4e-07    (14)
#   output  flashinfer/fa2-plain, fa3-plain   0.01      0.008     2e-05    (3)
#   output  flashinfer                        0.001     0.001     1e-06    default
#   lse     flashinfer/fa2                    0         0.000704  1e-07    (15) (8)
#   lse     oracle                            2.38e-07  1e-05*    1e-11    (5)
#   lse     metamorphic:cpu                   4.77e-07  2e-05*    1e-07    (6)
#   lse     metamorphic:strided               4.77e-07  2e-05*    1e-07    (6)
#   lse     flashinfer/fa2-plain              0         0.00562   1e-06    (7) (8)
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00019   1e-07    (9)
#   lse     flashinfer                        1e-05     1e-05     1e-07    default
# Tolerances of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more:
#   output  source                            rtol      atol     NMSE   reason
#   output  oracle                            0.00391   1e-05*   1e-05  (1)
#   output  flashinfer/fa2, fa3               0.01      0.008    2e-05  (2)
#   output  flashinfer/fa2-plain, fa3-plain   0.01      0.008    2e-05  (3)
#   output  flashinfer                        0.01      0.008    2e-05  default
#   lse     oracle                            2.38e-07  1e-05*   1e-11  (5)
#   lse     metamorphic:cpu                   4.77e-07  2e-05*   1e-07  (6)
#   lse     metamorphic:strided               4.77e-07  2e-05*   1e-07  (6)
#   lse     flashinfer/fa2, fa2-plain         0         0.00562  1e-06  (7) (8)
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00019  1e-07  (9)
#   lse     flashinfer                        1e-05     1e-05    1e-07  default
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


class GqaPagedDecodePs64Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    axes = {"page_size": 64}

# The next 2: The query stands at its sequence's last key. Queries, keys, values and
# output are float16. A query that sees no key gives output 0 and lse -inf.
class TestGqaPagedDecodeFp16H32Kv32D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_fp16_h32_kv32_d128_ps64"  # model:llama-2-7b, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_FP16
    axes = {"num_qo_heads": 32, "num_kv_heads": 32, "head_dim": 128}
    constants = ("fp16",)
    FP16 = True  # "fp16" in the name
    sha256 = "ace5cf4443b2a3897b5894bf4dad32f0ee27930a508555e0fcc27efb25b4186c"

class TestGqaPagedDecodeFp16H32Kv8D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_fp16_h32_kv8_d128_ps64"  # model:llama-3.1-8b-awq, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_FP16
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128}
    constants = ("fp16",)
    FP16 = True  # "fp16" in the name
    sha256 = "be870a8f8b377215c1fbfe9b51c55460347c75c98f24ffd6bcea17ca2cdc48af"

# The next 15: The query stands at its sequence's last key. A query that sees no key
# gives output 0 and lse -inf.
class TestGqaPagedDecodeH12Kv1D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h12_kv1_d128_ps64"  # model:glm-4.6, tp:8
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 12, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "67429beadb02ae4aba3dc37f746741a476fcdd88334ce5382dafa57e2a1e7ec8"

class TestGqaPagedDecodeH16Kv1D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h16_kv1_d128_ps64"  # model:qwen3-235b-a22b, tp:4
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 16, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "6913047002159411d73dd6e9826220d798ff943cec2e03288dbee7038163c410"

class TestGqaPagedDecodeH16Kv2D256Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h16_kv2_d256_ps64"  # model:qwen3-next-80b-a3b, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 16, "num_kv_heads": 2, "head_dim": 256}
    sha256 = "55b066721c5d165d0af5c41f7a5f9a414f2c53b96aa475ba8eb889ba8973aa59"

class TestGqaPagedDecodeH16Kv2D512Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h16_kv2_d512_ps64"  # model:gemma-4-26b-a4b, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 16, "num_kv_heads": 2, "head_dim": 512}
    sha256 = "1aee1f632629607fa50dc4a61fd20407c6211607f4b5e7b1e1d44ca7e8da88de"

class TestGqaPagedDecodeH16Kv4D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h16_kv4_d128_ps64"  # model:smollm3-3b, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 16, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "2644240ebadb0a1ed1234d0a86e7757d040ac352db30807c2d7c90f346277e67"

class TestGqaPagedDecodeH24Kv2D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h24_kv2_d128_ps64"  # model:glm-4.6, tp:4
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 24, "num_kv_heads": 2, "head_dim": 128}
    sha256 = "0fa5902191a7e9abd1e881c8dba2d46370c3427b018c84c2d308339f6948ae92"

class TestGqaPagedDecodeH28Kv4D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h28_kv4_d128_ps64"  # model:qwen2.5-7b, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 28, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "4a47128daf0f3fb4c18a1e10e1137a2074cd069527c8d4ee7954c254e4dfafed"

class TestGqaPagedDecodeH32Kv4D512Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h32_kv4_d512_ps64"  # model:gemma-4-31b, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 32, "num_kv_heads": 4, "head_dim": 512}
    sha256 = "197c667124cacee0e0627b406bdae72344c22ac43ffdadeb7000412e52730daf"

class TestGqaPagedDecodeH32Kv8D64Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h32_kv8_d64_ps64"  # model:llama-3.2-1b, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 64}
    sha256 = "bdde1d734382944f396e47693e45c97f0a44ed1f9d7c2b6bb8264190b4186e68"

# model:qwen3-14b, model:llama-4-scout, tp:1
class TestGqaPagedDecodeH40Kv8D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h40_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 40, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "71a2374f61e8d96022da664f5a45e52277d0ea75f1bb3de5e07b7df0d7863cdf"

# model:minimax-m2, model:mixtral-8x22b, tp:1
class TestGqaPagedDecodeH48Kv8D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h48_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 48, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "308c405423a3b8fbca986913141ba16f6907ff390cd5fcad31c17b3c7bfe1232"

class TestGqaPagedDecodeH64Kv4D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h64_kv4_d128_ps64"  # model:qwen3-235b-a22b, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 64, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "fb444558910e58a4d4cbc36d2f96920ee86648dede6a245571cf0eb9d98546fe"

# model:llama-3.1-70b, model:llama-3.3-70b, model:qwen3-32b, tp:1
class TestGqaPagedDecodeH64Kv8D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h64_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 64, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "812dba82456166fca871dcfc5f5e21b9ae483eade5f28461c6716227778bd505"

# model:llama-3.1-70b, model:llama-3.3-70b, model:qwen3-235b-a22b, tp:8
class TestGqaPagedDecodeH8Kv1D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h8_kv1_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 8, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "d3b8409a539e35e658e13b5736a9dfd13c4165699501d1298d05b05b67b07039"

class TestGqaPagedDecodeH96Kv8D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h96_kv8_d128_ps64"  # model:glm-4.6, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 96, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "224b8e2f9fdffe518b2be36a128cc50ffec1abc69eb7d61f45d7ca3676bfb32b"

# The next 8: A sequence without keys gives output 0 and lse -inf.
# model:llama-3.1-70b, model:qwen3-32b, tp:4
class TestGqaPagedDecodeH16Kv2D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h16_kv2_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 16, "num_kv_heads": 2, "head_dim": 128}
    sha256 = "e2071f3042006c4685df51d549222f1af03493e5ac6f0b820ef5fe503ddc1523"

class TestGqaPagedDecodeH20Kv4D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h20_kv4_d128_ps64"  # model:qwen3-14b, tp:2
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 20, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "550d9753f47832858c5edbe5d1c1445175830c1f48b32325643659d6e991e893"

class TestGqaPagedDecodeH24Kv4D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h24_kv4_d128_ps64"  # model:mixtral-8x22b, tp:2
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 24, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "6fcb964062414092c22cfd1e3f575de29436ce9d5d715460c26d0eb02cfdfbd4"

class TestGqaPagedDecodeH24Kv8D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h24_kv8_d128_ps64"  # model:llama-3.2-3b, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 24, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "2cfad11d04467c51cca8ed2246ccb8cb0f8f3fb66d2d614ce499c9d8b6b81760"

class TestGqaPagedDecodeH32Kv16D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h32_kv16_d128_ps64"  # model:gemma-3-27b, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 32, "num_kv_heads": 16, "head_dim": 128}
    sha256 = "08af977181700e0ff847d9a021d246dbf95a964813239acd41ae54313dcd1fce"

class TestGqaPagedDecodeH32Kv4D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h32_kv4_d128_ps64"  # model:qwen3-30b-a3b, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 32, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "dce97cb15e6789f2c78ea30e4a8a3d450e69e7ba4520da4f03eb0419a016eaff"

class TestGqaPagedDecodeH32Kv8D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h32_kv8_d128_ps64"  # model:llama-3.1-8b, tp:1
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "0e18dc7400f02ad8751a3aaf879910d007903d2c11f6770b2bc2b764ef02fcb4"

class TestGqaPagedDecodeH6Kv1D128Ps64(GqaPagedDecodePs64Base):
    name = "gqa_paged_decode_h6_kv1_d128_ps64"  # model:minimax-m2, tp:8
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 6, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "038f84e6db605f9df8242f53d800a0e16241e25e6f0b0c3eae1d57c7b612daee"


# Grouped-query attention over a paged KV cache, decode: num_qo_heads query heads share
# num_kv_heads KV heads. A page holds one token. A sequence without keys gives output 0
# and lse -inf. lse is base 2.
# stage:decode, fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedDecodePs1Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    axes = {"head_dim": 128, "page_size": 1}

# model:llama-3.1-70b, model:qwen3-32b, tp:4
class TestGqaPagedDecodeH16Kv2D128Ps1(GqaPagedDecodePs1Base):
    name = "gqa_paged_decode_h16_kv2_d128_ps1"
    axes = {"num_qo_heads": 16, "num_kv_heads": 2}
    sha256 = "3b10bd718ac4e71d17d26c352d26ee8735d1df7764078d81bd7a33a17bb2b1f4"

class TestGqaPagedDecodeH20Kv4D128Ps1(GqaPagedDecodePs1Base):
    name = "gqa_paged_decode_h20_kv4_d128_ps1"  # model:qwen3-14b, tp:2
    axes = {"num_qo_heads": 20, "num_kv_heads": 4}
    sha256 = "b5d7713e06b823c42d4568b12e26ff211bbf70ccd6fb3f7d117c9f2699e28fa0"

class TestGqaPagedDecodeH24Kv8D128Ps1(GqaPagedDecodePs1Base):
    name = "gqa_paged_decode_h24_kv8_d128_ps1"  # model:llama-3.2-3b, tp:1
    axes = {"num_qo_heads": 24, "num_kv_heads": 8}
    sha256 = "a44a405b25c6a345fc5b394a9b2fd75a913f6fe50100e46e9b4e379fbd7a30c0"

class TestGqaPagedDecodeH32Kv16D128Ps1(GqaPagedDecodePs1Base):
    name = "gqa_paged_decode_h32_kv16_d128_ps1"  # model:gemma-3-27b, tp:1
    axes = {"num_qo_heads": 32, "num_kv_heads": 16}
    sha256 = "515f1327b25bb97e60f2cefbaf52bddb4d65e954ff134c8c342367e3ac2048fe"

class TestGqaPagedDecodeH32Kv4D128Ps1(GqaPagedDecodePs1Base):
    name = "gqa_paged_decode_h32_kv4_d128_ps1"  # model:qwen3-30b-a3b, tp:1
    axes = {"num_qo_heads": 32, "num_kv_heads": 4}
    sha256 = "37218afaf9a1a011c501ff635b50a16e761e5ce73110ee71a5bdbb2f5c2fff22"

class TestGqaPagedDecodeH32Kv8D128Ps1(GqaPagedDecodePs1Base):
    name = "gqa_paged_decode_h32_kv8_d128_ps1"  # model:llama-3.1-8b, tp:1
    axes = {"num_qo_heads": 32, "num_kv_heads": 8}
    sha256 = "7ad169041910405147e7c0237768baedacfa674e0215a12762092d12b933d6ee"

class TestGqaPagedDecodeH48Kv8D128Ps1(GqaPagedDecodePs1Base):
    name = "gqa_paged_decode_h48_kv8_d128_ps1"  # model:mixtral-8x22b, tp:1
    axes = {"num_qo_heads": 48, "num_kv_heads": 8}
    sha256 = "758788e5636ffd58f83bd109414f4739bd5b02940a7e0870961d4303941452f3"

class TestGqaPagedDecodeH5Kv1D128Ps1(GqaPagedDecodePs1Base):
    name = "gqa_paged_decode_h5_kv1_d128_ps1"  # model:llama-4-scout, tp:8
    axes = {"num_qo_heads": 5, "num_kv_heads": 1}
    sha256 = "3ea97958f11d9a15a5b53ea16a3840bf8cbfbcd77c027c244e010c0971ae1463"

class TestGqaPagedDecodeH6Kv1D128Ps1(GqaPagedDecodePs1Base):
    name = "gqa_paged_decode_h6_kv1_d128_ps1"  # model:minimax-m2, tp:8
    axes = {"num_qo_heads": 6, "num_kv_heads": 1}
    sha256 = "8593863aa7d59c97bcc818d059de116f5f6f3050f00124c6f0534656cdf6a1df"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The query stands at its sequence's last key. In a page, a
# head's tokens lie side by side (layout HND). A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:decode, fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedDecodeHndBase(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_hnd)
    interface = INTERFACE_GQA_PAGED_DECODE_HND
    axes = {"num_qo_heads": 32, "head_dim": 128, "page_size": 64}

class TestGqaPagedDecodeHndH32Kv4D128Ps64(GqaPagedDecodeHndBase):
    name = "gqa_paged_decode_hnd_h32_kv4_d128_ps64"  # model:qwen3-30b-a3b
    axes = {"num_kv_heads": 4}
    sha256 = "09c55180129047f744934d06e16159e4b98ba8fc33ae6027ed2ed21b6e047f16"

class TestGqaPagedDecodeHndH32Kv8D128Ps64(GqaPagedDecodeHndBase):
    name = "gqa_paged_decode_hnd_h32_kv8_d128_ps64"  # model:llama-3.1-8b
    axes = {"num_kv_heads": 8}
    sha256 = "697b32358edc8507756e3d5912e111a70cf928f0e3ba4ca4a18bb2b1abedfc95"


# Grouped-query attention over a paged KV cache, decode: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The query stands at its sequence's last key. The cache is
# stored in 8 bits: keys are k_cache * k_scale, values are v_cache * v_scale. A query
# that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:decode, fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
# Tolerances:
#   output  source                            rtol      atol     NMSE   reason
#   output  flashinfer                        0.012     0.008*   2e-05  (16)
#   output  oracle                            0.00391   1e-05*   1e-05  (1)
#   lse     oracle                            2.38e-07  1e-05*   1e-11  (5)
#   lse     metamorphic:cpu                   4.77e-07  2e-05*   1e-07  (6)
#   lse     metamorphic:strided               4.77e-07  2e-05*   1e-07  (6)
#   lse     flashinfer/fa2, fa2-plain         0         0.00562  1e-06  (7) (8)
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00019  1e-07  (9)
#   lse     flashinfer                        1e-05     1e-05    1e-07  default
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


class GqaPagedDecodeKve4m3Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_kve4m3)
    interface = INTERFACE_GQA_PAGED_DECODE_KVE4M3
    axes = {"head_dim": 128, "page_size": 64}
    constants = ("kve4m3",)
    KVE4M3 = True  # "kve4m3" in the name

class TestGqaPagedDecodeKve4m3H32Kv4D128Ps64(GqaPagedDecodeKve4m3Base):
    name = "gqa_paged_decode_kve4m3_h32_kv4_d128_ps64"  # model:qwen3-30b-a3b
    axes = {"num_qo_heads": 32, "num_kv_heads": 4}
    sha256 = "f851c47a01c5b152c595ed86ae628dac1972f9513f8e093a06ca140f6786139d"

class TestGqaPagedDecodeKve4m3H32Kv8D128Ps64(GqaPagedDecodeKve4m3Base):
    name = "gqa_paged_decode_kve4m3_h32_kv8_d128_ps64"  # model:llama-3.1-8b
    axes = {"num_qo_heads": 32, "num_kv_heads": 8}
    sha256 = "61810fe98d14e760a376f11934625dad38ffed5fc489b8b355acbb65684b0490"

# model:llama-3.1-70b, model:llama-3.3-70b
class TestGqaPagedDecodeKve4m3H64Kv8D128Ps64(GqaPagedDecodeKve4m3Base):
    name = "gqa_paged_decode_kve4m3_h64_kv8_d128_ps64"
    axes = {"num_qo_heads": 64, "num_kv_heads": 8}
    sha256 = "36f12c10271ad9e46e91e6385379e5cdec39656637375c1d911f22c4857eabd0"


# Grouped-query attention over a paged KV cache, decode: num_qo_heads query heads share
# 8 KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The query stands at its sequence's last key. Queries and cache are
# stored in 8 bits, with a scale for each head: queries are q * q_scale, keys are
# k_cache * k_scale, values are v_cache * v_scale. A query that sees no key gives output
# 0 and lse -inf. lse is base 2.
# stage:decode, fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
# Tolerances:
#   output  source      rtol      atol                     NMSE    reason
#   output  flashinfer  0.01      1e-05* + 0.05·row's RMS  0.0015  (17) (18)
#   output  oracle      0.00391   1e-05*                   1e-05   (1)
#   lse     flashinfer  0         0.03*                    0.0001  (19) (20)
#   lse     oracle      2.38e-07  1e-05*                   1e-11   (5)
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


class GqaPagedDecodeQe4m3Kve4m3Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_qe4m3_kve4m3)
    interface = INTERFACE_GQA_PAGED_DECODE_QE4M3_KVE4M3
    axes = {"num_kv_heads": 8, "head_dim": 128, "page_size": 64}
    constants = ("kve4m3", "qe4m3")
    KVE4M3 = True  # "kve4m3" in the name
    QE4M3 = True  # "qe4m3" in the name

class TestGqaPagedDecodeQe4m3Kve4m3H32Kv8D128Ps64(GqaPagedDecodeQe4m3Kve4m3Base):
    name = "gqa_paged_decode_qe4m3_kve4m3_h32_kv8_d128_ps64"  # model:llama-3.1-8b
    axes = {"num_qo_heads": 32}
    sha256 = "340183b66c91be69f6006c57a964fd9d16ec8bee5da734b24af35e67c10188b4"

# model:llama-3.1-70b, model:llama-3.3-70b
class TestGqaPagedDecodeQe4m3Kve4m3H64Kv8D128Ps64(GqaPagedDecodeQe4m3Kve4m3Base):
    name = "gqa_paged_decode_qe4m3_kve4m3_h64_kv8_d128_ps64"
    axes = {"num_qo_heads": 64}
    sha256 = "c3d9c45521f1483c203bf2062cb6bb9cdece8df8b6f13dd63652bcff4235b81b"


# Grouped-query attention over a paged KV cache, decode: num_qo_heads query heads share
# num_kv_heads KV heads. A page holds one token. A sequence without keys gives output 0
# and lse -inf. lse is base 2. The interface is that of calls of FlashInfer's wrapper:
# without return_lse output is the one value. Solutions are installed under the name
# without return_lse.
# stage:decode, fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedDecodeReturnLseBase(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_return_lse)
    interface = INTERFACE_GQA_PAGED_DECODE_RETURN_LSE
    axes = {"head_dim": 128, "page_size": 1}

# model:llama-3.1-70b, model:qwen3-32b, tp:4
class TestGqaPagedDecodeReturnLseH16Kv2D128Ps1(GqaPagedDecodeReturnLseBase):
    name = "gqa_paged_decode_return_lse_h16_kv2_d128_ps1"
    axes = {"num_qo_heads": 16, "num_kv_heads": 2}
    sha256 = "e134748067b691bcee47f2b55a61de44ff35122c72c11aa56b574dcf2368a140"

class TestGqaPagedDecodeReturnLseH20Kv4D128Ps1(GqaPagedDecodeReturnLseBase):
    name = "gqa_paged_decode_return_lse_h20_kv4_d128_ps1"  # model:qwen3-14b, tp:2
    axes = {"num_qo_heads": 20, "num_kv_heads": 4}
    sha256 = "5eeb5dbfa4cc6f38b9ba54bdecb5c3c9b54446afc4b63870d17ddda3440b9cd5"

class TestGqaPagedDecodeReturnLseH32Kv4D128Ps1(GqaPagedDecodeReturnLseBase):
    name = "gqa_paged_decode_return_lse_h32_kv4_d128_ps1"  # model:qwen3-30b-a3b, tp:1
    axes = {"num_qo_heads": 32, "num_kv_heads": 4}
    sha256 = "c711f5159882003b118a5ea265dac769b7757998f93cdedad49871b700da993a"

class TestGqaPagedDecodeReturnLseH32Kv8D128Ps1(GqaPagedDecodeReturnLseBase):
    name = "gqa_paged_decode_return_lse_h32_kv8_d128_ps1"  # model:llama-3.1-8b, tp:1
    axes = {"num_qo_heads": 32, "num_kv_heads": 8}
    sha256 = "351eafd7758a4d08f10693c7b098fbf7d6aabfa3157326a0845fed9dec47c259"


# Grouped-query attention over a paged KV cache, decode: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The query stands at its sequence's last key. A head's sink
# is one more logit, natural and unscaled, whose value is zero: it adds to the sum of
# exponentials, and to lse. A query that sees no key gives output 0 and the lse of its
# sink. lse is base 2.
# stage:decode, model:gpt-oss-120b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedDecodeSinkBase(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_sink)
    interface = INTERFACE_GQA_PAGED_DECODE_SINK
    axes = {"head_dim": 64, "page_size": 64}

class TestGqaPagedDecodeSinkH16Kv2D64Ps64(GqaPagedDecodeSinkBase):
    name = "gqa_paged_decode_sink_h16_kv2_d64_ps64"  # tp:4
    axes = {"num_qo_heads": 16, "num_kv_heads": 2}
    sha256 = "e83f25412f5f9a64c855eb33409ca67db8e23c63d334017b7218a680c4f2d7cc"

class TestGqaPagedDecodeSinkH64Kv8D64Ps64(GqaPagedDecodeSinkBase):
    name = "gqa_paged_decode_sink_h64_kv8_d64_ps64"  # model:gpt-oss-20b, tp:1
    axes = {"num_qo_heads": 64, "num_kv_heads": 8}
    sha256 = "6cd0a25a0104b04eff3601e0c1e15419411fe68cc98e5aa65bd7d8451fb10946"

class TestGqaPagedDecodeSinkH8Kv1D64Ps64(GqaPagedDecodeSinkBase):
    name = "gqa_paged_decode_sink_h8_kv1_d64_ps64"  # tp:8
    axes = {"num_qo_heads": 8, "num_kv_heads": 1}
    sha256 = "8be7335ba65821a514df27eec98ad4735c67d0d57fb5319c8dc83b99b627f136"


# Grouped-query attention over a paged KV cache, decode: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The query stands at its sequence's last key. A query at
# key p sees keys p - 127 ... p, a sliding window of 128. A head's sink is one more
# logit, natural and unscaled, whose value is zero: it adds to the sum of exponentials,
# and to lse. A query that sees no key gives output 0 and the lse of its sink. lse is
# base 2.
# stage:decode, model:gpt-oss-120b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedDecodeSinkW127Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_sink_w127)
    interface = INTERFACE_GQA_PAGED_DECODE_SINK
    axes = {"head_dim": 64, "page_size": 64}
    constants = ("window_left",)
    WINDOW_LEFT = 127  # "w127" in the name

class TestGqaPagedDecodeSinkW127H16Kv2D64Ps64(GqaPagedDecodeSinkW127Base):
    name = "gqa_paged_decode_sink_w127_h16_kv2_d64_ps64"  # tp:4
    axes = {"num_qo_heads": 16, "num_kv_heads": 2}
    sha256 = "cd040f4dbc204cbc32259b6b341a6fffb043a6fff5b0c335047c1d19e5e95c53"

class TestGqaPagedDecodeSinkW127H64Kv8D64Ps64(GqaPagedDecodeSinkW127Base):
    name = "gqa_paged_decode_sink_w127_h64_kv8_d64_ps64"  # model:gpt-oss-20b, tp:1
    axes = {"num_qo_heads": 64, "num_kv_heads": 8}
    sha256 = "253d91bd0bf8eb5c5ea9ff61cac036bf2485837e3af7a0e91c683af785747f15"

class TestGqaPagedDecodeSinkW127H8Kv1D64Ps64(GqaPagedDecodeSinkW127Base):
    name = "gqa_paged_decode_sink_w127_h8_kv1_d64_ps64"  # tp:8
    axes = {"num_qo_heads": 8, "num_kv_heads": 1}
    sha256 = "aebabe08a27254a3cea2f89e98547bea5bf53d1876a65bc94f03461041f5500a"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 16 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The query stands at its sequence's last key. A query at key p sees keys
# p - 1023 ... p, a sliding window of 1024. A query that sees no key gives output 0 and
# lse -inf. lse is base 2.
# stage:decode, fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedDecodeW1023H32Kv16Ps64Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_w1023_h32_kv16_ps64)
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 32, "num_kv_heads": 16, "page_size": 64}
    constants = ("window_left",)
    WINDOW_LEFT = 1023  # "w1023" in the name

class TestGqaPagedDecodeW1023H32Kv16D128Ps64(GqaPagedDecodeW1023H32Kv16Ps64Base):
    name = "gqa_paged_decode_w1023_h32_kv16_d128_ps64"  # model:gemma-3-27b
    axes = {"head_dim": 128}
    sha256 = "81b0b4a03b334af78b62448274e0810c8a023b906b160fc9ee7a806c4d5b9dff"

class TestGqaPagedDecodeW1023H32Kv16D256Ps64(GqaPagedDecodeW1023H32Kv16Ps64Base):
    name = "gqa_paged_decode_w1023_h32_kv16_d256_ps64"  # model:gemma-4-31b
    axes = {"head_dim": 256}
    sha256 = "5c68f7f9bfba2af57cd8a590033928de06577a6843c068ad2606a84bcf582b55"


# Grouped-query attention over a paged KV cache, decode: 32 query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The query stands at its sequence's last key. A query at
# key p sees keys p - 4095 ... p, a sliding window of 4096. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:decode, fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedDecodeW4095H32Ps64Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_decode_w4095_h32_ps64)
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    axes = {"num_qo_heads": 32, "head_dim": 128, "page_size": 64}
    constants = ("window_left",)
    WINDOW_LEFT = 4095  # "w4095" in the name

class TestGqaPagedDecodeW4095H32Kv32D128Ps64(GqaPagedDecodeW4095H32Ps64Base):
    name = "gqa_paged_decode_w4095_h32_kv32_d128_ps64"  # model:olmo-3-7b
    axes = {"num_kv_heads": 32}
    sha256 = "54ae6a2fc5fea9242055e2717a85e90dabb6d9da81346f9a6b321c696a4b7ad0"

class TestGqaPagedDecodeW4095H32Kv8D128Ps64(GqaPagedDecodeW4095H32Ps64Base):
    name = "gqa_paged_decode_w4095_h32_kv8_d128_ps64"  # model:mistral-7b-v0.1
    axes = {"num_kv_heads": 8}
    sha256 = "330df775ac050bcfe6c75dfeb00aaa52414a766181c9e9d695be9c737e6f4fa0"


# Grouped-query attention over a paged KV cache, prefill: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The mask is causal and aligned bottom-right: query i of
# q_len stands at key kv_len - q_len + i. ALiBi adds slope * (j - p) to the scaled logit
# of the key at j for a query at p, which is 0 for its own key. With n the largest power
# of 2 up to the number of query heads, slope is 2 ** (-8 * (h + 1) / n) for head h < n,
# and 2 ** (-4 * (2 * (h - n) + 1) / n) for the others. A query that sees no key gives
# output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
# Tolerances: those of reference_gqa_paged_decode_alibi.
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


class GqaPagedPrefillCausalAlibiBase(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_causal_alibi)
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"head_dim": 128, "page_size": 64}
    constants = ("alibi",)
    ALIBI = True  # "alibi" in the name

# model:mpt-7b, model:bloom-7b1
class TestGqaPagedPrefillCausalAlibiH32Kv32D128Ps64(GqaPagedPrefillCausalAlibiBase):
    name = "gqa_paged_prefill_causal_alibi_h32_kv32_d128_ps64"
    axes = {"num_qo_heads": 32, "num_kv_heads": 32}
    sha256 = "2e4c72efccb56122cad97c6411a451fb5d28fa466acb08c0d7d97ca569a37581"

class TestGqaPagedPrefillCausalAlibiH40Kv40D128Ps64(GqaPagedPrefillCausalAlibiBase):
    name = "gqa_paged_prefill_causal_alibi_h40_kv40_d128_ps64"  # model:baichuan2-13b
    axes = {"num_qo_heads": 40, "num_kv_heads": 40}
    sha256 = "6426daea3ef7e71af604afea5cf449aa9af847f87a66292279e6a33132657e35"


# Grouped-query attention over a paged KV cache, prefill: 48 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A scaled logit l becomes 30 * tanh(l / 30), before mask and
# softmax. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:grok-1,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
# Tolerances: those of reference_gqa_paged_decode_cap30_h48_kv8_ps64.
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


class TestGqaPagedPrefillCausalCap30H48Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_cap30_h48_kv8_d128_ps64"
    reference = staticmethod(reference_gqa_paged_prefill_causal_cap30_h48_kv8_ps64)
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 48, "num_kv_heads": 8, "head_dim": 128, "page_size": 64}
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 30  # "cap30" in the name
    sha256 = "787c9296ade871fa1c2a1b45b3be6797192a815108d018a4adca7fd2e3f370ab"


# Grouped-query attention over a paged KV cache, prefill: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The mask is causal and aligned bottom-right: query i of
# q_len stands at key kv_len - q_len + i. A scaled logit l becomes 50 * tanh(l / 50),
# before mask and softmax. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
# Tolerances: those of reference_gqa_paged_decode_cap30_h48_kv8_ps64.
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


class GqaPagedPrefillCausalCap50Ps64Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_causal_cap50_ps64)
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"page_size": 64}
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 50  # "cap50" in the name

class TestGqaPagedPrefillCausalCap50H16Kv8D256Ps64(GqaPagedPrefillCausalCap50Ps64Base):
    name = "gqa_paged_prefill_causal_cap50_h16_kv8_d256_ps64"  # model:gemma-2-9b
    axes = {"num_qo_heads": 16, "num_kv_heads": 8, "head_dim": 256}
    sha256 = "55ac3349f4153857b6c418be5609de1b8cb87618e5bbc2b6860d23f85058ea0f"

class TestGqaPagedPrefillCausalCap50H32Kv16D128Ps64(GqaPagedPrefillCausalCap50Ps64Base):
    name = "gqa_paged_prefill_causal_cap50_h32_kv16_d128_ps64"  # model:gemma-2-27b
    axes = {"num_qo_heads": 32, "num_kv_heads": 16, "head_dim": 128}
    sha256 = "578f3aef7bf05d27b0d8eb976c6100d6551e7f007ad9261d709445d0bc403948"


# Grouped-query attention over a paged KV cache, prefill: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The mask is causal and aligned bottom-right: query i of
# q_len stands at key kv_len - q_len + i. A query at key p sees keys p - 4095 ... p, a
# sliding window of 4096. A scaled logit l becomes 50 * tanh(l / 50), before mask and
# softmax. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
# Tolerances: those of reference_gqa_paged_decode_cap30_h48_kv8_ps64.
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


class GqaPagedPrefillCausalCap50W4095Ps64Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_causal_cap50_w4095_ps64)
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"page_size": 64}
    constants = ("window_left", "logits_soft_cap")
    WINDOW_LEFT = 4095  # "w4095" in the name
    LOGITS_SOFT_CAP = 50  # "cap50" in the name

class TestGqaPagedPrefillCausalCap50W4095H16Kv8D256Ps64(
    GqaPagedPrefillCausalCap50W4095Ps64Base
):
    name = "gqa_paged_prefill_causal_cap50_w4095_h16_kv8_d256_ps64"  # model:gemma-2-9b
    axes = {"num_qo_heads": 16, "num_kv_heads": 8, "head_dim": 256}
    sha256 = "502172ef08349ebaa9eeeafa4e00ae0723cb8cee14dd1f4eb4abfeb5ba0db1bb"

# model:gemma-2-27b
class TestGqaPagedPrefillCausalCap50W4095H32Kv16D128Ps64(
    GqaPagedPrefillCausalCap50W4095Ps64Base
):
    name = "gqa_paged_prefill_causal_cap50_w4095_h32_kv16_d128_ps64"
    axes = {"num_qo_heads": 32, "num_kv_heads": 16, "head_dim": 128}
    sha256 = "133fae46e6597161cea899ab75307cbfbe2daa6d03c60f4fdbdb7f1c45d9b31f"


# A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it has no
# pages. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper
# Tolerances of gqa_paged_prefill_causal_fp16_h32_kv32_d128_ps64 and 1 more: those of gqa_paged_decode_fp16_h32_kv32_d128_ps64 and 1 more.
# Tolerances of gqa_paged_prefill_causal_h12_kv1_d128_ps64 and 23 more: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedPrefillCausalPs64Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    axes = {"page_size": 64}

# The next 2: Grouped-query attention over a paged KV cache, prefill: 32 query heads
# share num_kv_heads KV heads. The mask is causal and aligned bottom-right: query i of
# q_len stands at key kv_len - q_len + i. Queries, keys, values and output are float16.
class TestGqaPagedPrefillCausalFp16H32Kv32D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_fp16_h32_kv32_d128_ps64"  # model:llama-2-7b, tp:1
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_FP16
    axes = {"num_qo_heads": 32, "num_kv_heads": 32, "head_dim": 128}
    constants = ("fp16",)
    FP16 = True  # "fp16" in the name
    sha256 = "4284ec8f420ec4ab8e3d0b954f4a53a875206d001e2fdce7ebc7c86d5ab8ed2f"

# model:llama-3.1-8b-awq, tp:1
class TestGqaPagedPrefillCausalFp16H32Kv8D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_fp16_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_FP16
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128}
    constants = ("fp16",)
    FP16 = True  # "fp16" in the name
    sha256 = "47f49805c92bb356ea15fbb61c5922383702da45726e9a2be67f189948ca5e65"

# The next 14: Grouped-query attention over a paged KV cache, prefill: num_qo_heads
# query heads share num_kv_heads KV heads. The mask is causal and aligned bottom-right:
# query i of q_len stands at key kv_len - q_len + i.
class TestGqaPagedPrefillCausalH12Kv1D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h12_kv1_d128_ps64"  # model:glm-4.6, tp:8
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 12, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "60346bb56f876710b21f0ce7b7b8167c81e6b4bcc253edf5291c56260460bec3"

# model:qwen3-next-80b-a3b, tp:1
class TestGqaPagedPrefillCausalH16Kv2D256Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h16_kv2_d256_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 16, "num_kv_heads": 2, "head_dim": 256}
    sha256 = "a40f0da43fccd3fb8f000bfc9296c37ef4fac27f9fc978fbc431a63dcb5541d7"

class TestGqaPagedPrefillCausalH16Kv2D512Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h16_kv2_d512_ps64"  # model:gemma-4-26b-a4b, tp:1
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 16, "num_kv_heads": 2, "head_dim": 512}
    sha256 = "49686bdd40324fe513d5731b148da2384eb94b761fb000e429d148ba251b7534"

class TestGqaPagedPrefillCausalH16Kv4D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h16_kv4_d128_ps64"  # model:smollm3-3b, tp:1
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 16, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "a5d202ed6ad84e235f85f2fc7e7b5b04663687f00c84f633ba23b6dbe6b68538"

class TestGqaPagedPrefillCausalH24Kv2D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h24_kv2_d128_ps64"  # model:glm-4.6, tp:4
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 24, "num_kv_heads": 2, "head_dim": 128}
    sha256 = "ed61c873c542117a83dccce3259c27175aba32cfe1a1b94d1d3928aeec25b12b"

class TestGqaPagedPrefillCausalH28Kv4D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h28_kv4_d128_ps64"  # model:qwen2.5-7b, tp:1
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 28, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "89c9f37bf43406526ce7646cfda013730bbca20f2193a86178b46079a50bc5f5"

class TestGqaPagedPrefillCausalH32Kv4D512Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h32_kv4_d512_ps64"  # model:gemma-4-31b, tp:1
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 4, "head_dim": 512}
    sha256 = "22d00d0bfde3c9bb6471d7590e0d16d5c3e0f0f670a11a647c896ad2e00b7cde"

class TestGqaPagedPrefillCausalH32Kv8D64Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h32_kv8_d64_ps64"  # model:llama-3.2-1b, tp:1
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 64}
    sha256 = "3f78da5adbd4f931fe4d6797cbfb1b3fe28d1da869c3089472b4fb03c6973e0d"

# model:qwen3-14b, model:llama-4-scout, tp:1
class TestGqaPagedPrefillCausalH40Kv8D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h40_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 40, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "251df86ca6f4e9ce52666332179e4fc17175c01461fabe4dadfce0c2fee9ed0a"

# model:minimax-m2, model:mixtral-8x22b, tp:1
class TestGqaPagedPrefillCausalH48Kv8D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h48_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 48, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "5edad7bc2dc1bf0000077578a03302969f0641f683715f7c59576c404321cbe2"

class TestGqaPagedPrefillCausalH64Kv4D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h64_kv4_d128_ps64"  # model:qwen3-235b-a22b, tp:1
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 64, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "76d2d5b2a54d2f03616582aaeec3a140eb2eb3bea1a24c08d8f3596b74c638a7"

# model:llama-3.1-70b, model:llama-3.3-70b, model:qwen3-32b, tp:1
class TestGqaPagedPrefillCausalH64Kv8D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h64_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 64, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "e262d188a1fe68f0039ff57039b03a3f801ce5c11f79631dc664f0fa5544a422"

# model:llama-3.1-70b, model:llama-3.3-70b, model:qwen3-235b-a22b, tp:8
class TestGqaPagedPrefillCausalH8Kv1D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h8_kv1_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 8, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "e85b450fbef9007102bf2dc5984f240754c2899d462911d2fec9f91eae28e7a5"

class TestGqaPagedPrefillCausalH96Kv8D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h96_kv8_d128_ps64"  # model:glm-4.6, tp:1
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 96, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "af49af0b49f7cb3c0ca33bce32dc50fd302ed60aac4094f8b18c498a339fadcf"

# The next 10: Grouped-query attention over a paged KV cache, causal prefill:
# num_qo_heads query heads share num_kv_heads KV heads. The mask is causal and aligned
# bottom-right: query i of q_len sees keys 0 ... kv_len - q_len + i.
class TestGqaPagedPrefillCausalH16Kv1D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h16_kv1_d128_ps64"  # model:qwen3-235b, tp:4
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 16, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "0129d0fcfef8dfa5cecd2c743ae017cfec3924be332cb962ff9250c7b4039321"

# model:llama-3.1-70b, model:qwen3-32b, tp:4
class TestGqaPagedPrefillCausalH16Kv2D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h16_kv2_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 16, "num_kv_heads": 2, "head_dim": 128}
    sha256 = "88bc1f0ff258c59b7be2ed04fc7d51eb45a091801ec27e972848c0c3f60fb8f4"

class TestGqaPagedPrefillCausalH20Kv4D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h20_kv4_d128_ps64"  # model:qwen3-14b, tp:2
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 20, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "6a90bf7fe6e0c4be08c9a70a03f1efa688dff18bcf98b2530072a41182b3fc05"

class TestGqaPagedPrefillCausalH24Kv4D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h24_kv4_d128_ps64"  # model:mixtral-8x22b, tp:2
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 24, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "be9e447f94a86ddb7e64ffb082be17c4a5931c48bd763238756c67c37b74ba70"

class TestGqaPagedPrefillCausalH24Kv8D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h24_kv8_d128_ps64"  # model:llama-3.2-3b, tp:1
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 24, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "d6113f65bffeadcd9e7eb28a8f548b206f14bd9d6e6d6df8d960cf1be9cb0116"

class TestGqaPagedPrefillCausalH32Kv16D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h32_kv16_d128_ps64"  # model:gemma-3-27b, tp:1
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 16, "head_dim": 128}
    sha256 = "e2f4593214fa1c57e0a963078bbb3ab0b2db7a1de9fa07205d2746cd71a6c4bc"

class TestGqaPagedPrefillCausalH32Kv4D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h32_kv4_d128_ps64"  # model:qwen3-30b-a3b, tp:1
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "4018eeb9bb89e4858a06d97f0c4146f19a05dbdb00e4f688756db4f7eff652fe"

class TestGqaPagedPrefillCausalH32Kv8D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h32_kv8_d128_ps64"  # model:llama-3.1-8b, tp:1
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "622aababeeec3af35c91ee304cd9d4ea4e3c2ec67c4250c3a88704fdc1a631e2"

class TestGqaPagedPrefillCausalH5Kv1D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h5_kv1_d128_ps64"  # model:llama-4-scout, tp:8
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 5, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "553a55e3ed88f8a73398dbf9410ae8d8d9c68e8fab84c35583051a63487a0c30"

class TestGqaPagedPrefillCausalH6Kv1D128Ps64(GqaPagedPrefillCausalPs64Base):
    name = "gqa_paged_prefill_causal_h6_kv1_d128_ps64"  # model:minimax-m2, tp:8
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 6, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "5d47f6e2c9d98a2c6a5f51e53ee232f535893419b29e484a01b27f324f91aef8"


# Grouped-query attention over a paged KV cache, causal prefill: num_qo_heads query
# heads share num_kv_heads KV heads. A page holds one token. The mask is causal and
# aligned bottom-right: query i of q_len sees keys 0 ... kv_len - q_len + i. A query
# that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedPrefillCausalPs1Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL
    axes = {"head_dim": 128, "page_size": 1}

# model:llama-3.1-70b, model:qwen3-32b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:4
class TestGqaPagedPrefillCausalH16Kv2D128Ps1(GqaPagedPrefillCausalPs1Base):
    name = "gqa_paged_prefill_causal_h16_kv2_d128_ps1"
    axes = {"num_qo_heads": 16, "num_kv_heads": 2}
    sha256 = "dab0ad7825658f21011c4fc7457334894e9d706c82550e0cdd8585269c7bdec7"

# model:qwen3-14b, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:2
class TestGqaPagedPrefillCausalH20Kv4D128Ps1(GqaPagedPrefillCausalPs1Base):
    name = "gqa_paged_prefill_causal_h20_kv4_d128_ps1"
    axes = {"num_qo_heads": 20, "num_kv_heads": 4}
    sha256 = "bbe1e86d915660cbfce735a8d2d299eb13cf0188f77c426461e2dc08f0999965"

# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, model:mixtral-8x22b,
# tp:2
class TestGqaPagedPrefillCausalH24Kv4D128Ps1(GqaPagedPrefillCausalPs1Base):
    name = "gqa_paged_prefill_causal_h24_kv4_d128_ps1"
    axes = {"num_qo_heads": 24, "num_kv_heads": 4}
    sha256 = "cbe8049b412e5aad4aea470292c312f4dfc1d169614b6bfd7969f87b7489a9e8"

# model:llama-3.2-3b, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper,
# tp:1
class TestGqaPagedPrefillCausalH24Kv8D128Ps1(GqaPagedPrefillCausalPs1Base):
    name = "gqa_paged_prefill_causal_h24_kv8_d128_ps1"
    axes = {"num_qo_heads": 24, "num_kv_heads": 8}
    sha256 = "ec67f4cf1d9998c0b364b9c546135fbb52abcb3abb0003a82b820b9794e7eb05"

# model:gemma-3-27b, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv16D128Ps1(GqaPagedPrefillCausalPs1Base):
    name = "gqa_paged_prefill_causal_h32_kv16_d128_ps1"
    axes = {"num_qo_heads": 32, "num_kv_heads": 16}
    sha256 = "67919d135a9694abec3eaa9470c59d38b94efb531b322984976005a5fb0652ce"

# model:qwen3-30b-a3b, fi_api:flashinfer.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv4D128Ps1(GqaPagedPrefillCausalPs1Base):
    name = "gqa_paged_prefill_causal_h32_kv4_d128_ps1"
    axes = {"num_qo_heads": 32, "num_kv_heads": 4}
    sha256 = "d3816d349f6cbb442a15c9e3ed24351e2c99c2ca73ca6ee638c6e43361f33a57"

# model:llama-3.1-8b, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper,
# tp:1
class TestGqaPagedPrefillCausalH32Kv8D128Ps1(GqaPagedPrefillCausalPs1Base):
    name = "gqa_paged_prefill_causal_h32_kv8_d128_ps1"
    axes = {"num_qo_heads": 32, "num_kv_heads": 8}
    sha256 = "76128230a304062f35c4b0dffe6c479f97f404162731453ef51bac7b79b3deae"

# model:phi-4-14b, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH40Kv10D128Ps1(GqaPagedPrefillCausalPs1Base):
    name = "gqa_paged_prefill_causal_h40_kv10_d128_ps1"
    axes = {"num_qo_heads": 40, "num_kv_heads": 10}
    sha256 = "8247fe1bc2e341ded422a8ddf6eb328ce9d3d902c3617ee5e4522e1165324deb"

# model:llama-4-scout, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper,
# tp:8
class TestGqaPagedPrefillCausalH5Kv1D128Ps1(GqaPagedPrefillCausalPs1Base):
    name = "gqa_paged_prefill_causal_h5_kv1_d128_ps1"
    axes = {"num_qo_heads": 5, "num_kv_heads": 1}
    sha256 = "9a85a498f484c350efabae21b885030740976904e14fdce3828ffa81fa84d54b"

# model:minimax-m2, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:8
class TestGqaPagedPrefillCausalH6Kv1D128Ps1(GqaPagedPrefillCausalPs1Base):
    name = "gqa_paged_prefill_causal_h6_kv1_d128_ps1"
    axes = {"num_qo_heads": 6, "num_kv_heads": 1}
    sha256 = "7e48ab508faa77400f55fc429a1af2877e4e234298ec75b61787e437a2a7776b"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The mask is causal and aligned bottom-right: query i of
# q_len stands at key kv_len - q_len + i. In a page, a head's tokens lie side by side
# (layout HND). A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedPrefillCausalHndBase(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_causal_hnd)
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_HND
    axes = {"num_qo_heads": 32, "head_dim": 128, "page_size": 64}

class TestGqaPagedPrefillCausalHndH32Kv4D128Ps64(GqaPagedPrefillCausalHndBase):
    name = "gqa_paged_prefill_causal_hnd_h32_kv4_d128_ps64"  # model:qwen3-30b-a3b
    axes = {"num_kv_heads": 4}
    sha256 = "2940af75d9dfcaf5a807552c5c1a75bb87df3591241bb2f71afea304fb15aff8"

class TestGqaPagedPrefillCausalHndH32Kv8D128Ps64(GqaPagedPrefillCausalHndBase):
    name = "gqa_paged_prefill_causal_hnd_h32_kv8_d128_ps64"  # model:llama-3.1-8b
    axes = {"num_kv_heads": 8}
    sha256 = "8af3589a54320e160315fd7052c39f841d6cc3a3efefb06c3ba1ef8971366cfb"


# Grouped-query attention over a paged KV cache, prefill: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The mask is causal and aligned bottom-right: query i of
# q_len stands at key kv_len - q_len + i. The cache is stored in 8 bits: keys are
# k_cache * k_scale, values are v_cache * v_scale. A query that sees no key gives output
# 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
# Tolerances: those of reference_gqa_paged_decode_kve4m3.
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


class GqaPagedPrefillCausalKve4m3Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_causal_kve4m3)
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_KVE4M3
    axes = {"head_dim": 128, "page_size": 64}
    constants = ("kve4m3",)
    KVE4M3 = True  # "kve4m3" in the name

class TestGqaPagedPrefillCausalKve4m3H32Kv4D128Ps64(GqaPagedPrefillCausalKve4m3Base):
    name = "gqa_paged_prefill_causal_kve4m3_h32_kv4_d128_ps64"  # model:qwen3-30b-a3b
    axes = {"num_qo_heads": 32, "num_kv_heads": 4}
    sha256 = "62eaa34fae50ee8b43256e27d27862fe95184a0631b84e02311a5c18b7e38ded"

class TestGqaPagedPrefillCausalKve4m3H32Kv8D128Ps64(GqaPagedPrefillCausalKve4m3Base):
    name = "gqa_paged_prefill_causal_kve4m3_h32_kv8_d128_ps64"  # model:llama-3.1-8b
    axes = {"num_qo_heads": 32, "num_kv_heads": 8}
    sha256 = "726ba273b88ffcd973ef3d2fc0be8813f9d97054b5d77cee854220f9cf9f89c6"

# model:llama-3.1-70b, model:llama-3.3-70b
class TestGqaPagedPrefillCausalKve4m3H64Kv8D128Ps64(GqaPagedPrefillCausalKve4m3Base):
    name = "gqa_paged_prefill_causal_kve4m3_h64_kv8_d128_ps64"
    axes = {"num_qo_heads": 64, "num_kv_heads": 8}
    sha256 = "7d981b9c18c319ac84db95c9c904c6770fceab15b75248d3b8ab58697c523a55"


# Grouped-query attention over a paged KV cache, prefill: num_qo_heads query heads share
# 8 KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len stands
# at key kv_len - q_len + i. Queries and cache are stored in 8 bits, with a scale for
# each head: queries are q * q_scale, keys are k_cache * k_scale, values are v_cache *
# v_scale. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
# Tolerances: those of reference_gqa_paged_decode_qe4m3_kve4m3.
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


class GqaPagedPrefillCausalQe4m3Kve4m3Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_causal_qe4m3_kve4m3)
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_QE4M3_KVE4M3
    axes = {"num_kv_heads": 8, "head_dim": 128, "page_size": 64}
    constants = ("kve4m3", "qe4m3")
    KVE4M3 = True  # "kve4m3" in the name
    QE4M3 = True  # "qe4m3" in the name

# model:llama-3.1-8b
class TestGqaPagedPrefillCausalQe4m3Kve4m3H32Kv8D128Ps64(
    GqaPagedPrefillCausalQe4m3Kve4m3Base
):
    name = "gqa_paged_prefill_causal_qe4m3_kve4m3_h32_kv8_d128_ps64"
    axes = {"num_qo_heads": 32}
    sha256 = "bd57b44ff8791eaec6ac13a3a05121865ce93bb918c5e8df4e1ebd3686ac2c36"

# model:llama-3.1-70b, model:llama-3.3-70b
class TestGqaPagedPrefillCausalQe4m3Kve4m3H64Kv8D128Ps64(
    GqaPagedPrefillCausalQe4m3Kve4m3Base
):
    name = "gqa_paged_prefill_causal_qe4m3_kve4m3_h64_kv8_d128_ps64"
    axes = {"num_qo_heads": 64}
    sha256 = "4b16bd0905e2ae592adcd7e6b7393ed9f2499c537c336ae20b05968378c26f5f"


# Grouped-query attention over a paged KV cache, prefill: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The mask is causal and aligned bottom-right: query i of
# q_len stands at key kv_len - q_len + i. A head's sink is one more logit, natural and
# unscaled, whose value is zero: it adds to the sum of exponentials, and to lse. A query
# that sees no key gives output 0 and the lse of its sink. lse is base 2.
# stage:prefill, model:gpt-oss-120b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedPrefillCausalSinkBase(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_causal_sink)
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_SINK
    axes = {"head_dim": 64, "page_size": 64}

class TestGqaPagedPrefillCausalSinkH16Kv2D64Ps64(GqaPagedPrefillCausalSinkBase):
    name = "gqa_paged_prefill_causal_sink_h16_kv2_d64_ps64"  # tp:4
    axes = {"num_qo_heads": 16, "num_kv_heads": 2}
    sha256 = "11e8695d5266c8e27023f320f9e675d9ed5d8b78878528cc3c3da81a0b6c4f5b"

class TestGqaPagedPrefillCausalSinkH64Kv8D64Ps64(GqaPagedPrefillCausalSinkBase):
    name = "gqa_paged_prefill_causal_sink_h64_kv8_d64_ps64"  # model:gpt-oss-20b, tp:1
    axes = {"num_qo_heads": 64, "num_kv_heads": 8}
    sha256 = "9f8f770a90749d4324824293fabe437f84ec0af1d60467de9e0b5b0618869b29"

class TestGqaPagedPrefillCausalSinkH8Kv1D64Ps64(GqaPagedPrefillCausalSinkBase):
    name = "gqa_paged_prefill_causal_sink_h8_kv1_d64_ps64"  # tp:8
    axes = {"num_qo_heads": 8, "num_kv_heads": 1}
    sha256 = "053443d3b2e5855201841a742afb70341e8e10dcf5412fb18293581c026f994c"


# Grouped-query attention over a paged KV cache, prefill: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The mask is causal and aligned bottom-right: query i of
# q_len stands at key kv_len - q_len + i. A query at key p sees keys p - 127 ... p, a
# sliding window of 128. A head's sink is one more logit, natural and unscaled, whose
# value is zero: it adds to the sum of exponentials, and to lse. A query that sees no
# key gives output 0 and the lse of its sink. lse is base 2.
# stage:prefill, model:gpt-oss-120b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedPrefillCausalSinkW127Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_causal_sink_w127)
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_SINK
    axes = {"head_dim": 64, "page_size": 64}
    constants = ("window_left",)
    WINDOW_LEFT = 127  # "w127" in the name

class TestGqaPagedPrefillCausalSinkW127H16Kv2D64Ps64(GqaPagedPrefillCausalSinkW127Base):
    name = "gqa_paged_prefill_causal_sink_w127_h16_kv2_d64_ps64"  # tp:4
    axes = {"num_qo_heads": 16, "num_kv_heads": 2}
    sha256 = "b9ab41a5ce8f795f4013c719b4853746c036519527e00a6ceb1a99170f8f31a2"

# model:gpt-oss-20b, tp:1
class TestGqaPagedPrefillCausalSinkW127H64Kv8D64Ps64(GqaPagedPrefillCausalSinkW127Base):
    name = "gqa_paged_prefill_causal_sink_w127_h64_kv8_d64_ps64"
    axes = {"num_qo_heads": 64, "num_kv_heads": 8}
    sha256 = "af58a0c649cdb497f4c19bb2d28633b0a07dd32719255bb3ea9ac007970dc87e"

class TestGqaPagedPrefillCausalSinkW127H8Kv1D64Ps64(GqaPagedPrefillCausalSinkW127Base):
    name = "gqa_paged_prefill_causal_sink_w127_h8_kv1_d64_ps64"  # tp:8
    axes = {"num_qo_heads": 8, "num_kv_heads": 1}
    sha256 = "488bc6c2b2e0befe321a7efcb8c1945cbcc65b97525aacf36009f25f683ffb40"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 16 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 1023 ... p, a sliding window of
# 1024. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedPrefillCausalW1023H32Kv16Ps64Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_causal_w1023_h32_kv16_ps64)
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 16, "page_size": 64}
    constants = ("window_left",)
    WINDOW_LEFT = 1023  # "w1023" in the name

class TestGqaPagedPrefillCausalW1023H32Kv16D128Ps64(
    GqaPagedPrefillCausalW1023H32Kv16Ps64Base
):
    name = "gqa_paged_prefill_causal_w1023_h32_kv16_d128_ps64"  # model:gemma-3-27b
    axes = {"head_dim": 128}
    sha256 = "b02481ab2808d60a0c2874f2fca0f35812c0c18f75209706eea29d828f477a4d"

class TestGqaPagedPrefillCausalW1023H32Kv16D256Ps64(
    GqaPagedPrefillCausalW1023H32Kv16Ps64Base
):
    name = "gqa_paged_prefill_causal_w1023_h32_kv16_d256_ps64"  # model:gemma-4-31b
    axes = {"head_dim": 256}
    sha256 = "9a7ec2f4300337aa9ce0b99bc8079ffc0f5cd07155b072c3b4ebcdb6e1ff3b88"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The mask is causal and aligned bottom-right: query i of
# q_len stands at key kv_len - q_len + i. A query at key p sees keys p - 4095 ... p, a
# sliding window of 4096. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedPrefillCausalW4095H32Ps64Base(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_causal_w4095_h32_ps64)
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 32, "head_dim": 128, "page_size": 64}
    constants = ("window_left",)
    WINDOW_LEFT = 4095  # "w4095" in the name

class TestGqaPagedPrefillCausalW4095H32Kv32D128Ps64(
    GqaPagedPrefillCausalW4095H32Ps64Base
):
    name = "gqa_paged_prefill_causal_w4095_h32_kv32_d128_ps64"  # model:olmo-3-7b
    axes = {"num_kv_heads": 32}
    sha256 = "75c74e5d927cfc458951dd681c1ca29f55c2c26aa11f56e797be95e3686c7348"

class TestGqaPagedPrefillCausalW4095H32Kv8D128Ps64(
    GqaPagedPrefillCausalW4095H32Ps64Base
):
    name = "gqa_paged_prefill_causal_w4095_h32_kv8_d128_ps64"  # model:mistral-7b-v0.1
    axes = {"num_kv_heads": 8}
    sha256 = "cc19a8a10f9128e663a51250a4c6e9cb363283cce11361a6bcb61d2b62774f85"


# Grouped-query attention over a paged KV cache, prefill: num_qo_heads query heads share
# num_kv_heads KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. Query i of a sequence sees its key j where element i *
# kv_len + j of the sequence's part of custom_mask is true; there is no other mask. So
# the tokens of a tree are verified at once, each seeing its ancestors. A query that
# sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class GqaPagedPrefillCustomMaskBase(GqaPagedTests):
    reference = staticmethod(reference_gqa_paged_prefill_custom_mask)
    interface = INTERFACE_GQA_PAGED_PREFILL_CUSTOM_MASK
    axes = {"head_dim": 128, "page_size": 64}
    constants = ("custom_mask",)
    CUSTOM_MASK = True  # "custom" in the name

class TestGqaPagedPrefillCustomMaskH32Kv8D128Ps64(GqaPagedPrefillCustomMaskBase):
    name = "gqa_paged_prefill_custom_mask_h32_kv8_d128_ps64"  # model:llama-3.1-8b
    axes = {"num_qo_heads": 32, "num_kv_heads": 8}
    sha256 = "ec08020ae5ce46c3f3a4cae689773aee732683235cc4375551ad43a826247865"

class TestGqaPagedPrefillCustomMaskH64Kv4D128Ps64(GqaPagedPrefillCustomMaskBase):
    name = "gqa_paged_prefill_custom_mask_h64_kv4_d128_ps64"  # model:qwen3-235b-a22b
    axes = {"num_qo_heads": 64, "num_kv_heads": 4}
    sha256 = "3ccd421df38ade6c95d7fae470009bea50aff7e9dee0ca2cb8508591873bb557"

# model:llama-3.1-70b, model:llama-3.3-70b
class TestGqaPagedPrefillCustomMaskH64Kv8D128Ps64(GqaPagedPrefillCustomMaskBase):
    name = "gqa_paged_prefill_custom_mask_h64_kv8_d128_ps64"
    axes = {"num_qo_heads": 64, "num_kv_heads": 8}
    sha256 = "55bae3192e1bb2050990147bd087c781cf73407b6ed66a971e3fbfcef2e79671"


# Grouped-query attention over a paged KV cache, prefill: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. There is no mask: every query sees all keys. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.2-11b-vision,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
# Tolerances: those of gqa_paged_decode_h12_kv1_d128_ps64 and 22 more.
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


class TestGqaPagedPrefillNoncausalH32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_noncausal_h32_kv8_d128_ps64"
    reference = staticmethod(reference_gqa_paged_prefill_noncausal)
    interface = INTERFACE_GQA_PAGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128, "page_size": 64}
    constants = ("noncausal",)
    NONCAUSAL = True  # "noncausal" in the name
    sha256 = "ea22fc483bb1b4ea86ae58d654a6203e49f39773354cfbda0c3bc4d8d63b102d"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
