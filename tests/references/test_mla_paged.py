"""Reference tests of op_type mla_paged.

Rendered: don't edit. `gen-tests --op-type mla_paged` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
- SGLang's layers, live, in a process of their own
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
from dataclasses import replace
from typing import Any

import torch

from generator.ops.attention.caches import (
    drawn_dtype,
    drawn_scale,
    stored,
    stored_scales,
)
from generator.ops.attention.cases import (
    QK_NOPE_HEAD_DIM,
    decode_cases,
    latent_queries,
    prefill_cases,
    scale_of,
)
from generator.ops.attention.flashinfer import FA2, FA3, workspace
from generator.ops.attention.masks import tree_masks
from generator.ops.attention.oracle import oracle_paged, rows_with_a_key
from generator.ops.attention.relations import attention_relations
from generator.ops.attention.sequences import is_prefill
from generator.ops.attention.tolerances import attention_tolerances
from generator.ops.attention.variant import has_mask, variant_of
from generator.ops.op_types.mla_paged.sglang import sglang_backends, sglang_ground_truth
from generator.ops.paging import (
    cache,
    indptr,
    input_table,
    kv_lengths,
    page_table,
    query_starts,
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

TOLERANCES = attention_tolerances(products=576, total=1090)
FA2_OF_SM90 = replace(FA2, min_sm=90, max_sm=90)


def cases(definition: Definition) -> list[Case]:
    """Return the decode or prefill cases for the definition's page size."""
    of_stage = prefill_cases if is_prefill(definition) else decode_cases
    return of_stage(definition)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs, with pages in random order and loud stale slots.

    q_nope and q_pe bfloat16 [total_q or batch_size, num_qo_heads, d], ckv_cache and
    kpe_cache [num_pages, page_size, d], d being head_dim_ckv or head_dim_kpe; the page
    table int32. Caches with a scale are stored divided by it.
    """
    axes = {**definition.axes, **case.axes}
    table = page_table(
        case.params["kv_lens"], axes["page_size"], axes["num_pages"], stream
    )
    inputs: dict[str, Any] = {
        "qo_indptr": indptr(case.params["q_lens"]),
        "kv_indptr": table.indptr,
        "kv_indices": table.indices,
        "kv_last_page_len": table.last_page_len,
        "return_lse": True,
        "sm_scale": scale_of(case, QK_NOPE_HEAD_DIM + axes["head_dim_kpe"]),
    }
    inputs |= latent_queries(axes, case, axes["total_q"], stream)
    for name in ("ckv", "kpe"):
        shape = (axes["num_pages"], axes["page_size"], axes[f"head_dim_{name}"])
        scale = inputs[f"{name}_scale"] = drawn_scale(definition, case, name)
        dtype = dtype_of(definition.interface.input_specs[f"{name}_cache"].dtype)
        drawn = drawn_dtype(scale, dtype)
        values = cache(shape, table, stream.child(name), drawn)
        inputs[f"{name}_cache"] = stored(values, scale, dtype)
    if has_mask(definition):
        inputs["custom_mask"] = tree_masks(case, stream)
    return {name: inputs[name] for name in definition.interface.inputs}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output, shaped as q_nope, and LSE [queries, num_qo_heads], in float64."""
    q = torch.cat([inputs["q_nope"], inputs["q_pe"]], dim=2)
    keys = torch.cat([inputs["ckv_cache"], inputs["kpe_cache"]], dim=2)
    values = inputs["ckv_cache"][:, :, None]
    scales: tuple[Any, Any] = 1.0, 1.0
    if stored_scales(definition):
        of_ckv, of_kpe = inputs["ckv_scale"], inputs["kpe_scale"]
        of_keys = torch.full((keys.shape[2],), of_ckv, dtype=torch.float64)
        of_keys[values.shape[3] :] = of_kpe
        scales = of_keys.to(q.device), of_ckv
    variant = variant_of(definition)
    return oracle_paged(q, keys[:, :, None], values, inputs, variant, scales)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see at least one key: bool [total_q]."""
    return rows_with_a_key(inputs, definition.axes["page_size"])


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3, both generations of the MLA kernel.

    A cache in 8 bits has kernels for compute capability 9.0 alone; none takes a mask.
    """
    if has_mask(definition):
        return ()
    return (FA2_OF_SM90 if stored_scales(definition) else FA2, FA3)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's paged MLA wrapper."""
    import flashinfer

    q, ckv = inputs["q_nope"], inputs["ckv_cache"]
    page_size = definition.axes["page_size"]
    kv_lens = kv_lengths(input_table(inputs), page_size)
    wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(
        workspace(q.device), backend=backend
    )
    wrapper.plan(
        query_starts(inputs),
        inputs["kv_indptr"],
        inputs["kv_indices"],
        torch.tensor(kv_lens, dtype=torch.int32, device=q.device),
        definition.axes["num_qo_heads"],
        definition.axes["head_dim_ckv"],
        definition.axes["head_dim_kpe"],
        page_size,
        is_prefill(definition),
        inputs["sm_scale"],
        q.dtype,
        ckv.dtype,
    )
    caches = ckv, inputs["kpe_cache"]
    scales = {name: inputs[name] for name in stored_scales(definition)}
    return wrapper.run(q, inputs["q_pe"], *caches, **scales, return_lse=True)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=attention_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_MLA_PAGED_DECODE_PS64 = Interface(
    inputs={
        "q_nope": "bfloat16[batch_size, num_qo_heads, head_dim_ckv]",
        "q_pe": "bfloat16[batch_size, num_qo_heads, head_dim_kpe]",
        "ckv_cache": "bfloat16[num_pages, page_size, head_dim_ckv]",
        "kpe_cache": "bfloat16[num_pages, page_size, head_dim_kpe]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[batch_size, num_qo_heads, head_dim_ckv]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_MLA_PAGED_DECODE_PS1 = INTERFACE_MLA_PAGED_DECODE_PS64.but(
    without=("kv_last_page_len",),
)
INTERFACE_MLA_PAGED_DECODE_KVE4M3 = INTERFACE_MLA_PAGED_DECODE_PS64.but(
    inputs={
        "ckv_cache": "float8_e4m3fn[num_pages, page_size, head_dim_ckv]",
        "kpe_cache": "float8_e4m3fn[num_pages, page_size, head_dim_kpe]",
        "ckv_scale": "float32",
        "kpe_scale": "float32",
    },
    also=("ckv_scale > 0", "kpe_scale > 0"),
)
INTERFACE_MLA_PAGED_DECODE_RETURN_LSE = INTERFACE_MLA_PAGED_DECODE_PS1.but(
    inputs={"sm_scale": "float32", "return_lse": "bool"},
)
INTERFACE_MLA_PAGED_PREFILL_CAUSAL_PS64 = Interface(
    inputs={
        "q_nope": "bfloat16[total_q, num_qo_heads, head_dim_ckv]",
        "q_pe": "bfloat16[total_q, num_qo_heads, head_dim_kpe]",
        "ckv_cache": "bfloat16[num_pages, page_size, head_dim_ckv]",
        "kpe_cache": "bfloat16[num_pages, page_size, head_dim_kpe]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim_ckv]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_MLA_PAGED_PREFILL_CAUSAL_PS1 = INTERFACE_MLA_PAGED_PREFILL_CAUSAL_PS64.but(
    without=("kv_last_page_len",),
)
INTERFACE_MLA_PAGED_PREFILL_CAUSAL_KVE4M3 = INTERFACE_MLA_PAGED_PREFILL_CAUSAL_PS64.but(
    inputs={
        "ckv_cache": "float8_e4m3fn[num_pages, page_size, head_dim_ckv]",
        "kpe_cache": "float8_e4m3fn[num_pages, page_size, head_dim_kpe]",
        "ckv_scale": "float32",
        "kpe_scale": "float32",
    },
    also=("ckv_scale > 0", "kpe_scale > 0"),
)
INTERFACE_MLA_PAGED_PREFILL_CUSTOM_MASK = INTERFACE_MLA_PAGED_PREFILL_CAUSAL_PS64.but(
    inputs={
        "kpe_cache": "bfloat16[num_pages, page_size, head_dim_kpe]",
        "custom_mask": "bool[mask_len]",
    },
    also=(
        "mask_len == sum((qo_indptr[b + 1] - qo_indptr[b]) * ((kv_indptr[b + 1] - kv_indptr[b] - 1) * page_size + kv_last_page_len[b]) for b in range(batch_size) if kv_indptr[b + 1] > kv_indptr[b])",
    ),
)

# ---- the tests


class MlaPagedTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of mla_paged share."""

    op_type = "mla_paged"
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
# (4) the float32 sum of a logit's 576 products is off by sqrt(576/2)·0.4·2^-24 of their
# deviation of 2, 8.1e-7 root mean square and 4.9e-6 at most, which is 6 times that,
# 7e-6 in base 2.
# (5) a CPU and a GPU add the products of a logit in different orders, as a GPU does for
# rows that are views.
# (6) fa2 sums the probabilities after rounding them to bfloat16, whose unit roundoff is
# 2^-8.
# (7) a factor or an offset of 7.6e-06 is allowed.
# (8) the 576 products of a logit cancel from Σ|q·k|·sm_scale·log2(e) = 1090, and tensor
# cores add them in float32 by truncation.


# Multi-head latent attention over a paged cache, decode, with the projections absorbed:
# logits are q_nope . ckv + q_pe . kpe, the values are ckv, num_qo_heads query heads
# share one cache. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none
# where it has no pages. A sequence without keys gives output 0 and lse -inf. lse is
# base 2.
# stage:decode, fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper
# Tolerances:
#   output  source                            rtol      atol     NMSE   reason
#   output  oracle                            0.00391   1e-05*   1e-05  (1)
#   output  flashinfer/fa2, fa3               0.01      0.008    2e-05  (2)
#   output  flashinfer/fa2-plain, fa3-plain   0.01      0.008    2e-05  (3)
#   output  flashinfer, sglang                0.01      0.008    2e-05  default
#   lse     oracle                            2.38e-07  1e-05*   1e-11  (4)
#   lse     metamorphic:cpu                   4.77e-07  2e-05*   1e-07  (5)
#   lse     metamorphic:strided               4.77e-07  2e-05*   1e-07  (5)
#   lse     flashinfer/fa2, fa2-plain         0         0.00562  1e-06  (6) (7)
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00026  1e-07  (8)
#   lse     flashinfer, sglang                1e-05     1e-05    1e-07  default
def reference_mla_paged_decode_ps64():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, _ = q_nope.shape
        page_size = ckv_cache.shape[1]

        # What a sequence without keys returns.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (batch_size, num_qo_heads), -math.inf, dtype=torch.float32, device=q_nope.device
        )

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            ckv = ckv_cache[pages].flatten(0, 1)[:kv_len].float()
            kpe = kpe_cache[pages].flatten(0, 1)[:kv_len].float()

            # All heads share the compressed KV, which is both key and value.
            logits = (q_nope[b].float() @ ckv.T + q_pe[b].float() @ kpe.T) * sm_scale
            output[b] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1) / math.log(2)
        return output, lse

    return run


class MlaPagedDecodePs64Base(MlaPagedTests):
    reference = staticmethod(reference_mla_paged_decode_ps64)
    interface = INTERFACE_MLA_PAGED_DECODE_PS64
    axes = {"head_dim_ckv": 512, "head_dim_kpe": 64, "page_size": 64}

# model:deepseek-v3, model:deepseek-r1, tp:1
class TestMlaPagedDecodeH128Ckv512Kpe64Ps64(MlaPagedDecodePs64Base):
    name = "mla_paged_decode_h128_ckv512_kpe64_ps64"
    axes = {"num_qo_heads": 128}
    sha256 = "97873a3de1c9a26e25a92bb4af004eae768273abf70cbdac956ae47efb0ae5f8"

# model:deepseek-v3, model:deepseek-r1, tp:8
class TestMlaPagedDecodeH16Ckv512Kpe64Ps64(MlaPagedDecodePs64Base):
    name = "mla_paged_decode_h16_ckv512_kpe64_ps64"
    axes = {"num_qo_heads": 16}
    sha256 = "3045e64bbb7ff182b90085230d299a21a50cf4ac014bd192ce4f6cf60a80c23b"

class TestMlaPagedDecodeH64Ckv512Kpe64Ps64(MlaPagedDecodePs64Base):
    name = "mla_paged_decode_h64_ckv512_kpe64_ps64"  # model:kimi-k2, tp:1
    axes = {"num_qo_heads": 64}
    sha256 = "76cc11611ab932482c8b4da997fe10d480379a3450af04d0ec992e7c54dee0c6"

class TestMlaPagedDecodeH8Ckv512Kpe64Ps64(MlaPagedDecodePs64Base):
    name = "mla_paged_decode_h8_ckv512_kpe64_ps64"  # model:kimi-k2, tp:8
    axes = {"num_qo_heads": 8}
    sha256 = "735fb01eda373d878e315f2ea0df5bfac4aa88cc2f57907c7b1d970e5e1ea671"


# Multi-head latent attention over a paged cache, decode, with the projections absorbed:
# logits are q_nope . ckv + q_pe . kpe, the values are ckv, num_qo_heads query heads
# share one cache. A page holds one token. A sequence without keys gives output 0 and
# lse -inf. lse is base 2.
# stage:decode, fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper, tp:8
# Tolerances: those of reference_mla_paged_decode_ps64.
def reference_mla_paged_decode_ps1():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, _ = q_nope.shape

        # What a sequence without keys returns.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (batch_size, num_qo_heads), -math.inf, dtype=torch.float32, device=q_nope.device
        )

        kv_bounds = kv_indptr.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            ckv = ckv_cache[pages, 0].float()  # [kv_len, head_dim_ckv]
            kpe = kpe_cache[pages, 0].float()  # [kv_len, head_dim_kpe]

            # All heads share the compressed KV, which is both key and value.
            logits = (q_nope[b].float() @ ckv.T + q_pe[b].float() @ kpe.T) * sm_scale
            output[b] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1) / math.log(2)
        return output, lse

    return run


class MlaPagedDecodePs1Base(MlaPagedTests):
    reference = staticmethod(reference_mla_paged_decode_ps1)
    interface = INTERFACE_MLA_PAGED_DECODE_PS1
    axes = {"head_dim_ckv": 512, "head_dim_kpe": 64, "page_size": 1}

# model:deepseek-v3, model:deepseek-r1
class TestMlaPagedDecodeH16Ckv512Kpe64Ps1(MlaPagedDecodePs1Base):
    name = "mla_paged_decode_h16_ckv512_kpe64_ps1"
    axes = {"num_qo_heads": 16}
    sha256 = "831463e6133488ec405bc39fa26eaf066f777ca9873fb85e76673ff45ebf91c1"

class TestMlaPagedDecodeH8Ckv512Kpe64Ps1(MlaPagedDecodePs1Base):
    name = "mla_paged_decode_h8_ckv512_kpe64_ps1"  # model:kimi-k2
    axes = {"num_qo_heads": 8}
    sha256 = "bda2c67db9a36e9df1b9e424f7cf2d3f35faf79e52565df37d5dcb3980ab2718"


# Multi-head latent attention over a paged cache, decode, with the projections absorbed:
# logits are q_nope . ckv + q_pe . kpe, the values are ckv, num_qo_heads query heads
# share one cache. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none
# where it has no pages. The cache is stored in 8 bits, each part with a scale of its
# own. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper, tp:8
# Tolerances: those of reference_mla_paged_decode_ps64.
def reference_mla_paged_decode_kve4m3():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        ckv_scale: float,
        kpe_scale: float,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, _ = q_nope.shape
        page_size = ckv_cache.shape[1]

        # What a sequence without keys returns.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (batch_size, num_qo_heads), -math.inf, dtype=torch.float32, device=q_nope.device
        )

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            ckv = ckv_cache[pages].flatten(0, 1)[:kv_len].float() * ckv_scale
            kpe = kpe_cache[pages].flatten(0, 1)[:kv_len].float() * kpe_scale

            # All heads share the compressed KV, which is both key and value.
            logits = (q_nope[b].float() @ ckv.T + q_pe[b].float() @ kpe.T) * sm_scale
            output[b] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1) / math.log(2)
        return output, lse

    return run


class MlaPagedDecodeKve4m3Base(MlaPagedTests):
    reference = staticmethod(reference_mla_paged_decode_kve4m3)
    interface = INTERFACE_MLA_PAGED_DECODE_KVE4M3
    axes = {"head_dim_ckv": 512, "head_dim_kpe": 64, "page_size": 64}

# model:deepseek-v3, model:deepseek-r1
class TestMlaPagedDecodeKve4m3H16Ckv512Kpe64Ps64(MlaPagedDecodeKve4m3Base):
    name = "mla_paged_decode_kve4m3_h16_ckv512_kpe64_ps64"
    axes = {"num_qo_heads": 16}
    sha256 = "b578d104b78a5b73162c3bf99c26605fac1261c6a7323e84d5512a1038c954ed"

class TestMlaPagedDecodeKve4m3H8Ckv512Kpe64Ps64(MlaPagedDecodeKve4m3Base):
    name = "mla_paged_decode_kve4m3_h8_ckv512_kpe64_ps64"  # model:kimi-k2
    axes = {"num_qo_heads": 8}
    sha256 = "28401d5ad8ba745fe9a82d022195b95dcde0be952254a84b50d3f2f1d2764fc5"


# Multi-head latent attention over a paged cache, decode, with the projections absorbed:
# logits are q_nope . ckv + q_pe . kpe, the values are ckv, num_qo_heads query heads
# share one cache. A page holds one token. A sequence without keys gives output 0 and
# lse -inf. lse is base 2. The interface is that of calls of FlashInfer's wrapper:
# without return_lse output is the one value. Solutions are installed under the name
# without return_lse.
# stage:decode, fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper, tp:8
# Tolerances: those of reference_mla_paged_decode_ps64.
def reference_mla_paged_decode_return_lse():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        sm_scale: float,
        return_lse: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor] | torch.Tensor:
        batch_size, num_qo_heads, _ = q_nope.shape

        # What a sequence without keys returns.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (batch_size, num_qo_heads), -math.inf, dtype=torch.float32, device=q_nope.device
        )

        kv_bounds = kv_indptr.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            ckv = ckv_cache[pages, 0].float()  # [kv_len, head_dim_ckv]
            kpe = kpe_cache[pages, 0].float()  # [kv_len, head_dim_kpe]

            # All heads share the compressed KV, which is both key and value.
            logits = (q_nope[b].float() @ ckv.T + q_pe[b].float() @ kpe.T) * sm_scale
            output[b] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1) / math.log(2)
        return (output, lse) if return_lse else output

    return run


class MlaPagedDecodeReturnLseBase(MlaPagedTests):
    reference = staticmethod(reference_mla_paged_decode_return_lse)
    interface = INTERFACE_MLA_PAGED_DECODE_RETURN_LSE
    axes = {"head_dim_ckv": 512, "head_dim_kpe": 64, "page_size": 1}

# model:deepseek-v3, model:deepseek-r1
class TestMlaPagedDecodeReturnLseH16Ckv512Kpe64Ps1(MlaPagedDecodeReturnLseBase):
    name = "mla_paged_decode_return_lse_h16_ckv512_kpe64_ps1"
    axes = {"num_qo_heads": 16}
    sha256 = "71508a02315878544f0bcc9bf89377a3e33920389cbe1ffa76d8b4a0cc4e4c07"

class TestMlaPagedDecodeReturnLseH8Ckv512Kpe64Ps1(MlaPagedDecodeReturnLseBase):
    name = "mla_paged_decode_return_lse_h8_ckv512_kpe64_ps1"  # model:kimi-k2
    axes = {"num_qo_heads": 8}
    sha256 = "cb0c6590f9afb0f242894e73ca5ed6e2dec71882503b6ca8d0e4ef94fa347ed9"


# Multi-head latent attention over a paged cache, causal prefill, with the projections
# absorbed: logits are q_nope . ckv + q_pe . kpe, the values are ckv, num_qo_heads query
# heads share one cache. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The mask is causal and aligned bottom-right: query i of
# q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and
# lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper
# Tolerances: those of reference_mla_paged_decode_ps64.
def reference_mla_paged_prefill_causal_ps64():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total_q, num_qo_heads, _ = q_nope.shape
        device = q_nope.device
        page_size = ckv_cache.shape[1]

        # What a query that sees no key returns.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (total_q, num_qo_heads), -math.inf, dtype=torch.float32, device=device
        )

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
            ckv = ckv_cache[pages].flatten(0, 1)[:kv_len].float()
            kpe = kpe_cache[pages].flatten(0, 1)[:kv_len].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=device)
            key_positions = torch.arange(kv_len, device=device)
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # All heads share the compressed KV, which is both key and value.
            nope = q_nope[qo_start:qo_end].float()
            pe = q_pe[qo_start:qo_end].float()
            logits = (nope @ ckv.T + pe @ kpe.T) * sm_scale
            logits.masked_fill_(future[:, None, :], -math.inf)  # [q_len, heads, kv_len]
            output[qo_start:qo_end] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[qo_start:qo_end] = logits.logsumexp(dim=-1) / math.log(2)
        return output, lse

    return run


class MlaPagedPrefillCausalPs64Base(MlaPagedTests):
    reference = staticmethod(reference_mla_paged_prefill_causal_ps64)
    interface = INTERFACE_MLA_PAGED_PREFILL_CAUSAL_PS64
    axes = {"head_dim_ckv": 512, "head_dim_kpe": 64, "page_size": 64}

# model:deepseek-v3, model:deepseek-r1, tp:1
class TestMlaPagedPrefillCausalH128Ckv512Kpe64Ps64(MlaPagedPrefillCausalPs64Base):
    name = "mla_paged_prefill_causal_h128_ckv512_kpe64_ps64"
    axes = {"num_qo_heads": 128}
    sha256 = "0d6855a41a3de0c312a8470fbc6758594fd98cf8eb3d13ec30aa772675cfd883"

# model:deepseek-v3, model:deepseek-r1, tp:8
class TestMlaPagedPrefillCausalH16Ckv512Kpe64Ps64(MlaPagedPrefillCausalPs64Base):
    name = "mla_paged_prefill_causal_h16_ckv512_kpe64_ps64"
    axes = {"num_qo_heads": 16}
    sha256 = "78aa626a85b0fee6a878d9b311c3e5f68555da3ab1f1422e3ab9c28248905963"

class TestMlaPagedPrefillCausalH64Ckv512Kpe64Ps64(MlaPagedPrefillCausalPs64Base):
    name = "mla_paged_prefill_causal_h64_ckv512_kpe64_ps64"  # model:kimi-k2, tp:1
    axes = {"num_qo_heads": 64}
    sha256 = "6be4be3ac55f9912c78927c74e715cd4f8a3980f4ae817c20a6c6b5edb51e090"

class TestMlaPagedPrefillCausalH8Ckv512Kpe64Ps64(MlaPagedPrefillCausalPs64Base):
    name = "mla_paged_prefill_causal_h8_ckv512_kpe64_ps64"  # model:kimi-k2, tp:8
    axes = {"num_qo_heads": 8}
    sha256 = "90f1d42a2a3b9878b0d9e9489e545f786414b3be97d62e4056324df17f7adac4"


# Multi-head latent attention over a paged cache, causal prefill, with the projections
# absorbed: logits are q_nope . ckv + q_pe . kpe, the values are ckv, num_qo_heads query
# heads share one cache. A page holds one token. The mask is causal and aligned
# bottom-right: query i of q_len sees keys 0 ... kv_len - q_len + i. A query that sees
# no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper, tp:8
# Tolerances: those of reference_mla_paged_decode_ps64.
def reference_mla_paged_prefill_causal_ps1():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total_q, num_qo_heads, _ = q_nope.shape
        device = q_nope.device

        # What a query that sees no key returns.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (total_q, num_qo_heads), -math.inf, dtype=torch.float32, device=device
        )

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            kv_len = kv_end - kv_start
            ckv = ckv_cache[pages, 0].float()  # [kv_len, head_dim_ckv]
            kpe = kpe_cache[pages, 0].float()  # [kv_len, head_dim_kpe]

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=device)
            key_positions = torch.arange(kv_len, device=device)
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # All heads share the compressed KV, which is both key and value.
            nope = q_nope[qo_start:qo_end].float()
            pe = q_pe[qo_start:qo_end].float()
            logits = (nope @ ckv.T + pe @ kpe.T) * sm_scale
            logits.masked_fill_(future[:, None, :], -math.inf)  # [q_len, heads, kv_len]
            output[qo_start:qo_end] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[qo_start:qo_end] = logits.logsumexp(dim=-1) / math.log(2)
        return output, lse

    return run


class MlaPagedPrefillCausalPs1Base(MlaPagedTests):
    reference = staticmethod(reference_mla_paged_prefill_causal_ps1)
    interface = INTERFACE_MLA_PAGED_PREFILL_CAUSAL_PS1
    axes = {"head_dim_ckv": 512, "head_dim_kpe": 64, "page_size": 1}

# model:deepseek-v3, model:deepseek-r1
class TestMlaPagedPrefillCausalH16Ckv512Kpe64Ps1(MlaPagedPrefillCausalPs1Base):
    name = "mla_paged_prefill_causal_h16_ckv512_kpe64_ps1"
    axes = {"num_qo_heads": 16}
    sha256 = "64f3d842c9cb41765167f7417474e1672a2ad926a0d5baac13656c782e412b66"

class TestMlaPagedPrefillCausalH8Ckv512Kpe64Ps1(MlaPagedPrefillCausalPs1Base):
    name = "mla_paged_prefill_causal_h8_ckv512_kpe64_ps1"  # model:kimi-k2
    axes = {"num_qo_heads": 8}
    sha256 = "2b8d400d5bd61392476a0ba5ac8ed948538ba3cc4896a680db6490c02ac8973c"


# Multi-head latent attention over a paged cache, causal prefill, with the projections
# absorbed: logits are q_nope . ckv + q_pe . kpe, the values are ckv, num_qo_heads query
# heads share one cache. A sequence has (pages - 1) * page_size + kv_last_page_len keys,
# none where it has no pages. The cache is stored in 8 bits, each part with a scale of
# its own. The mask is causal and aligned bottom-right: query i of q_len sees keys 0 ...
# kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is base
# 2.
# stage:prefill, fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper, tp:8
# Tolerances: those of reference_mla_paged_decode_ps64.
def reference_mla_paged_prefill_causal_kve4m3():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        ckv_scale: float,
        kpe_scale: float,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total_q, num_qo_heads, _ = q_nope.shape
        device = q_nope.device
        page_size = ckv_cache.shape[1]

        # What a query that sees no key returns.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (total_q, num_qo_heads), -math.inf, dtype=torch.float32, device=device
        )

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
            ckv = ckv_cache[pages].flatten(0, 1)[:kv_len].float() * ckv_scale
            kpe = kpe_cache[pages].flatten(0, 1)[:kv_len].float() * kpe_scale

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=device)
            key_positions = torch.arange(kv_len, device=device)
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # All heads share the compressed KV, which is both key and value.
            nope = q_nope[qo_start:qo_end].float()
            pe = q_pe[qo_start:qo_end].float()
            logits = (nope @ ckv.T + pe @ kpe.T) * sm_scale
            logits.masked_fill_(future[:, None, :], -math.inf)  # [q_len, heads, kv_len]
            output[qo_start:qo_end] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[qo_start:qo_end] = logits.logsumexp(dim=-1) / math.log(2)
        return output, lse

    return run


class MlaPagedPrefillCausalKve4m3Base(MlaPagedTests):
    reference = staticmethod(reference_mla_paged_prefill_causal_kve4m3)
    interface = INTERFACE_MLA_PAGED_PREFILL_CAUSAL_KVE4M3
    axes = {"head_dim_ckv": 512, "head_dim_kpe": 64, "page_size": 64}

# model:deepseek-v3, model:deepseek-r1
class TestMlaPagedPrefillCausalKve4m3H16Ckv512Kpe64Ps64(
    MlaPagedPrefillCausalKve4m3Base
):
    name = "mla_paged_prefill_causal_kve4m3_h16_ckv512_kpe64_ps64"
    axes = {"num_qo_heads": 16}
    sha256 = "fb918a938e674f900abe34742d283a8ce06022ed1286f103dba409eaf39bc8ec"

class TestMlaPagedPrefillCausalKve4m3H8Ckv512Kpe64Ps64(MlaPagedPrefillCausalKve4m3Base):
    name = "mla_paged_prefill_causal_kve4m3_h8_ckv512_kpe64_ps64"  # model:kimi-k2
    axes = {"num_qo_heads": 8}
    sha256 = "6842bbd1db328d36277f5f5cbaa4291a02647018a0beeb48bf60e2e1456a330d"


# Multi-head latent attention over a paged cache, a tree of drafts verified, with the
# projections absorbed: logits are q_nope . ckv + q_pe . kpe, the values are ckv,
# num_qo_heads query heads share one cache. A sequence has (pages - 1) * page_size +
# kv_last_page_len keys, none where it has no pages. Query i of a sequence sees its key
# j where element i * kv_len + j of the sequence's part of custom_mask is true; there is
# no other mask. So the tokens of a tree are verified at once, each seeing its
# ancestors. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill
# Tolerances: those of reference_mla_paged_decode_ps64.
def reference_mla_paged_prefill_custom_mask():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        custom_mask: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total_q, num_qo_heads, _ = q_nope.shape
        device = q_nope.device
        page_size = ckv_cache.shape[1]

        # What a query that sees no key returns.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (total_q, num_qo_heads), -math.inf, dtype=torch.float32, device=device
        )

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
            ckv = ckv_cache[pages].flatten(0, 1)[:kv_len].float()
            kpe = kpe_cache[pages].flatten(0, 1)[:kv_len].float()

            # The masks of the sequences follow one another, each in rows of kv_len.
            q_len = qo_end - qo_start
            mask_end = mask_start + q_len * kv_len
            hidden = ~custom_mask[mask_start:mask_end].reshape(q_len, 1, kv_len)
            mask_start = mask_end

            # All heads share the compressed KV, which is both key and value.
            nope = q_nope[qo_start:qo_end].float()
            pe = q_pe[qo_start:qo_end].float()
            logits = (nope @ ckv.T + pe @ kpe.T) * sm_scale
            logits.masked_fill_(hidden, -math.inf)  # [q_len, heads, kv_len]
            # A query that sees no key has no weights; a softmax of it would be NaN.
            weights = logits.softmax(dim=-1).masked_fill(hidden, 0.0)
            output[qo_start:qo_end] = (weights @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[qo_start:qo_end] = logits.logsumexp(dim=-1) / math.log(2)
        return output, lse

    return run


class MlaPagedPrefillCustomMaskBase(MlaPagedTests):
    reference = staticmethod(reference_mla_paged_prefill_custom_mask)
    interface = INTERFACE_MLA_PAGED_PREFILL_CUSTOM_MASK
    axes = {"head_dim_ckv": 512, "head_dim_kpe": 64, "page_size": 64}
    constants = ("custom_mask",)
    CUSTOM_MASK = True  # "custom" in the name

# model:deepseek-v3, model:deepseek-r1, tp:1
class TestMlaPagedPrefillCustomMaskH128Ckv512Kpe64Ps64(MlaPagedPrefillCustomMaskBase):
    name = "mla_paged_prefill_custom_mask_h128_ckv512_kpe64_ps64"
    axes = {"num_qo_heads": 128}
    sha256 = "27200d110c7a421f1816f43a10c1fc87e630bfc2f72cb16c23c80d890ef22f78"

# model:deepseek-v3, model:deepseek-r1, tp:8
class TestMlaPagedPrefillCustomMaskH16Ckv512Kpe64Ps64(MlaPagedPrefillCustomMaskBase):
    name = "mla_paged_prefill_custom_mask_h16_ckv512_kpe64_ps64"
    axes = {"num_qo_heads": 16}
    sha256 = "c4a91f4bcff16f045c2b64ae7008ba36eac53e20d2ec07ab220bd92c6f66d215"

class TestMlaPagedPrefillCustomMaskH64Ckv512Kpe64Ps64(MlaPagedPrefillCustomMaskBase):
    name = "mla_paged_prefill_custom_mask_h64_ckv512_kpe64_ps64"  # model:kimi-k2, tp:1
    axes = {"num_qo_heads": 64}
    sha256 = "705a4f1cbf826d424a45c4d21cdf72e415e52da673cb4cd72202c830ff2b15e4"

class TestMlaPagedPrefillCustomMaskH8Ckv512Kpe64Ps64(MlaPagedPrefillCustomMaskBase):
    name = "mla_paged_prefill_custom_mask_h8_ckv512_kpe64_ps64"  # model:kimi-k2, tp:8
    axes = {"num_qo_heads": 8}
    sha256 = "b7a9dd931e4d7362bca1a840e6dc28f8b3381a36b1981e36ad09fc5d421fbe51"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
