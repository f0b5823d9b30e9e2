"""Reference tests of op_type page_append.

Rendered: don't edit. `gen-tests --op-type page_append` renders this file anew.

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
from typing import Any

import torch

from generator.ops.op_types.page_append.caches import cache_names, is_hnd
from generator.ops.op_types.page_append.inputs import append_axes, append_inputs
from generator.ops.op_types.page_append.names import ROWS
from generator.ops.op_types.page_append.relations import append_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.op_types.page_append.caches,
# generator.ops.op_types.page_append.names
# bounds: generator.ops.op_types.page_append.names
# relations: generator.ops.op_types.page_append.relations

TOLERANCES = tuple(
    Override(f"{cache}_out", EXACT, "numbers are copied, none is computed")
    for cache in ROWS
)
_RAGGED = tuple(Stream("appended").integers(1, 300, 16))
_LONG = tuple(Stream("appended at length").integers(1, 4096, 48))
# (length after the append, of it new) of each sequence, and MLA's page size
_LENGTHS = {
    "one-token": ("small", ((1, 1),), 1),
    "decode": ("small", ((17, 1), (64, 1), (65, 1), (1, 1), (129, 1)), 64),
    "whole-prompts": ("small", ((1, 1), (63, 63), (64, 64), (65, 65)), 16),
    "later-chunks": ("small", ((80, 16), (129, 1), (130, 66), (64, 33)), 64),
    "untouched-sequences": ("small", ((70, 0), (3, 2), (0, 0), (64, 0), (99, 40)), 32),
    "shuffled": ("small", ((80, 16), (65, 65), (130, 3)), 1),
    "batch": ("medium", tuple((n, n % 97 + 1) for n in _RAGGED if n > 97), 64),
    "past-limits": (LIMITS, ((8_300, 2_100), *[(1_000, 100)] * 36), 64),
    "long": ("large", tuple((n, n % 509 + 1) for n in _LONG if n > 509), 64),
}


def cases(definition: Definition) -> list[Case]:
    """Return single tokens, whole prompts, later chunks, sequences left alone."""
    return [_case(definition, name, *lengths) for name, lengths in _LENGTHS.items()]


def _case(
    definition: Definition,
    name: str,
    size: str,
    lengths: tuple[tuple[int, int], ...],
    mla_page_size: int,
) -> Case:
    kv_lens, new = (tuple(part) for part in zip(*lengths, strict=True))
    fixed = definition.axes.get("page_size")
    axes = append_axes(kv_lens, new, fixed or mla_page_size)
    if fixed:
        del axes["page_size"]
    params = {"kv_lens": kv_lens, "new": new, "shuffled": name == "shuffled"}
    return Case(name, size, axes, params)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `append_inputs` for their shapes."""
    return append_inputs(definition, case, stream)


def oracle(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return the caches, shaped as they came: each slot asks which row is for it."""
    names = cache_names(definition)
    heads_first = is_hnd(definition)
    page_size = inputs[names[0]].shape[2 if heads_first else 1]
    # page · page_size + slot of each token, sequence after sequence
    row_of = torch.full((len(inputs[names[0]]) * page_size,), -1, dtype=torch.int64)
    starts = inputs["kv_indptr"].tolist()
    sequences, tokens = (inputs[n].cpu() for n in ("batch_indices", "positions"))
    for b in range(len(starts) - 1):
        rows = (sequences == b).nonzero()[:, 0]
        pages = inputs["kv_indices"][starts[b] : starts[b + 1]].cpu().long()
        slots = (pages[:, None] * page_size + torch.arange(page_size)).flatten()
        row_of[slots[tokens[rows].long()]] = rows
    row_of = row_of.to(inputs[names[0]].device)
    caches = []
    for name in names:
        cache = inputs[name].transpose(1, 2) if heads_first else inputs[name]
        slots = cache.flatten(0, 1)
        written = (row_of >= 0).view(-1, *[1] * (slots.dim() - 1))
        full = torch.where(written, inputs[ROWS[name]][row_of.clamp_min(0)], slots)
        full = full.view(cache.shape)
        caches.append(full.transpose(1, 2).contiguous() if heads_first else full)
    return tuple(caches)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the caches that were given, which flashinfer.page's kernels write to."""
    from flashinfer import page

    names = cache_names(definition)
    rows = [inputs[ROWS[name]] for name in names]
    where = [inputs["batch_indices"], inputs["positions"]]
    caches = tuple(inputs[name] for name in names)
    table = [inputs[n] for n in ("kv_indices", "kv_indptr", "kv_last_page_len")]
    if "ckv_cache" in inputs:
        page.append_paged_mla_kv_cache(*rows, *where, *caches, *table)
    else:
        layout = "HND" if is_hnd(definition) else "NHD"
        page.append_paged_kv_cache(*rows, *where, caches, *table, kv_layout=layout)
    return caches


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=append_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)


# ---- the interfaces

INTERFACE_APPEND_PAGED_KV_CACHE_HND = Interface(
    inputs={
        "append_key": "bfloat16[nnz_kv, num_kv_heads, head_dim]",
        "append_value": "bfloat16[nnz_kv, num_kv_heads, head_dim]",
        "batch_indices": "int32[nnz_kv]",
        "positions": "int32[nnz_kv]",
        "k_cache": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
        "v_cache": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_indptr": "int32[len_indptr]",
        "kv_last_page_len": "int32[batch_size]",
    },
    outputs={
        "k_cache_out": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
        "v_cache_out": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
        "min(batch_indices.tolist()) >= 0",
        "max(batch_indices.tolist()) < batch_size",
        "min(positions.tolist()) >= 0",
    ),
)
INTERFACE_APPEND_PAGED_KV_CACHE = INTERFACE_APPEND_PAGED_KV_CACHE_HND.but(
    inputs={
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
    },
    outputs={
        "k_cache_out": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache_out": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
    },
)
INTERFACE_APPEND_PAGED_MLA_KV_CACHE = Interface(
    inputs={
        "append_ckv": "bfloat16[nnz_kv, head_dim_ckv]",
        "append_kpe": "bfloat16[nnz_kv, head_dim_kpe]",
        "batch_indices": "int32[nnz_kv]",
        "positions": "int32[nnz_kv]",
        "ckv_cache": "bfloat16[num_pages, page_size, head_dim_ckv]",
        "kpe_cache": "bfloat16[num_pages, page_size, head_dim_kpe]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_indptr": "int32[len_indptr]",
        "kv_last_page_len": "int32[batch_size]",
    },
    outputs={
        "ckv_cache_out": "bfloat16[num_pages, page_size, head_dim_ckv]",
        "kpe_cache_out": "bfloat16[num_pages, page_size, head_dim_kpe]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
        "min(batch_indices.tolist()) >= 0",
        "max(batch_indices.tolist()) < batch_size",
        "min(positions.tolist()) >= 0",
    ),
)

# ---- the tests


class PageAppendTests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of page_append share."""

    op_type = "page_append"
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
# (1) numbers are copied, none is computed.


# Append keys and values to a paged cache of layout HND. Row i belongs at token
# positions[i] of sequence batch_indices[i], which is slot position % page_size of page
# kv_indices[kv_indptr[b] + position // page_size]. The outputs are the whole caches:
# slots that no row is for keep what they hold. Rows may come in any order; no two have
# the same slot. A batch index of -1, which FlashInfer's get_batch_indices_positions
# pads with, is not allowed: the kernel reads in front of kv_indptr for it.
# fi_api:flashinfer.page.append_paged_kv_cache, tp:1
# Tolerances:
#   output       source              rtol   atol  NMSE  reason
#   k_cache_out  oracle, flashinfer  exact              (1)
#   v_cache_out  oracle, flashinfer  exact              (1)
def reference_append_paged_kv_cache_hnd():
    import torch


    @torch.no_grad()
    def run(
        append_key: torch.Tensor,
        append_value: torch.Tensor,
        batch_indices: torch.Tensor,
        positions: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_last_page_len: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        page_size = k_cache.shape[2]
        # A sequence's pages stand one after the other in kv_indices.
        pages = kv_indices[kv_indptr[batch_indices] + positions // page_size]
        slots = positions % page_size

        # A page holds all tokens of its first head, then those of the next.
        k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
        k_cache_out[pages, :, slots] = append_key
        v_cache_out[pages, :, slots] = append_value
        return k_cache_out, v_cache_out

    return run


class AppendPagedKvCacheHndBase(PageAppendTests):
    reference = staticmethod(reference_append_paged_kv_cache_hnd)
    interface = INTERFACE_APPEND_PAGED_KV_CACHE_HND
    axes = {"page_size": 64}

class TestAppendPagedKvCacheHndKv2D256Ps64(AppendPagedKvCacheHndBase):
    name = "append_paged_kv_cache_hnd_kv2_d256_ps64"  # model:qwen3-next-80b-a3b
    axes = {"num_kv_heads": 2, "head_dim": 256}
    sha256 = "341070e843b582010bb6ca6195e57104a2890aba3717bc51005424f65163cee0"

# model:llama-3.1-8b, model:mistral-7b-v0.1, model:minimax-m2
class TestAppendPagedKvCacheHndKv8D128Ps64(AppendPagedKvCacheHndBase):
    name = "append_paged_kv_cache_hnd_kv8_d128_ps64"
    axes = {"num_kv_heads": 8, "head_dim": 128}
    sha256 = "ff60c0a56127c1740dda352b4c8a4bd7bfbc71b21f0709682157ec2a3283f2c0"

# model:gpt-oss-120b, model:gpt-oss-20b
class TestAppendPagedKvCacheHndKv8D64Ps64(AppendPagedKvCacheHndBase):
    name = "append_paged_kv_cache_hnd_kv8_d64_ps64"
    axes = {"num_kv_heads": 8, "head_dim": 64}
    sha256 = "016116364dfae5dc00efe20a014ab72e5442828e3f8a9b9e0d70e54e042711c7"


# Append keys and values to a paged cache of layout NHD. Row i belongs at token
# positions[i] of sequence batch_indices[i], which is slot position % page_size of page
# kv_indices[kv_indptr[b] + position // page_size]. The outputs are the whole caches:
# slots that no row is for keep what they hold. Rows may come in any order; no two have
# the same slot. A batch index of -1, which FlashInfer's get_batch_indices_positions
# pads with, is not allowed: the kernel reads in front of kv_indptr for it.
# fi_api:flashinfer.page.append_paged_kv_cache
# Tolerances: those of reference_append_paged_kv_cache_hnd.
def reference_append_paged_kv_cache():
    import torch


    @torch.no_grad()
    def run(
        append_key: torch.Tensor,
        append_value: torch.Tensor,
        batch_indices: torch.Tensor,
        positions: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_last_page_len: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        page_size = k_cache.shape[1]
        # A sequence's pages stand one after the other in kv_indices.
        pages = kv_indices[kv_indptr[batch_indices] + positions // page_size]
        slots = positions % page_size

        k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
        k_cache_out[pages, slots] = append_key
        v_cache_out[pages, slots] = append_value
        return k_cache_out, v_cache_out

    return run


class AppendPagedKvCacheBase(PageAppendTests):
    reference = staticmethod(reference_append_paged_kv_cache)
    interface = INTERFACE_APPEND_PAGED_KV_CACHE

# model:gemma-3-27b, model:gemma-2-27b, tp:1
class TestAppendPagedKvCacheKv16D128Ps64(AppendPagedKvCacheBase):
    name = "append_paged_kv_cache_kv16_d128_ps64"
    axes = {"num_kv_heads": 16, "head_dim": 128, "page_size": 64}
    sha256 = "316321cfd60693784f857d3102ed73e81a6d4ffdf67041a20ab0ce54c6057018"

# model:llama-3.1-70b, model:llama-3.3-70b, model:qwen3-235b-a22b, tp:8
class TestAppendPagedKvCacheKv1D128Ps64(AppendPagedKvCacheBase):
    name = "append_paged_kv_cache_kv1_d128_ps64"
    axes = {"num_kv_heads": 1, "head_dim": 128, "page_size": 64}
    sha256 = "7cf3315ed2a85ca88340435abdc28d64047d8ed1fe0a0750fa87b2f1fc30c613"

# model:llama-3.1-70b, model:llama-3.3-70b, model:qwen3-32b, tp:4
class TestAppendPagedKvCacheKv2D128Ps64(AppendPagedKvCacheBase):
    name = "append_paged_kv_cache_kv2_d128_ps64"
    axes = {"num_kv_heads": 2, "head_dim": 128, "page_size": 64}
    sha256 = "1081e7aae95594040e4d38cd4a33d5de495459488f6628c7c23d1240d6f21205"

class TestAppendPagedKvCacheKv2D256Ps64(AppendPagedKvCacheBase):
    name = "append_paged_kv_cache_kv2_d256_ps64"  # model:qwen3-next-80b-a3b, tp:1
    axes = {"num_kv_heads": 2, "head_dim": 256, "page_size": 64}
    sha256 = "4536e1e92b24a639da25a504754049e9d2617e2ce0e7449305ec720d909444f5"

# model:qwen3-30b-a3b, model:qwen3-235b-a22b, tp:1
class TestAppendPagedKvCacheKv4D128Ps64(AppendPagedKvCacheBase):
    name = "append_paged_kv_cache_kv4_d128_ps64"
    axes = {"num_kv_heads": 4, "head_dim": 128, "page_size": 64}
    sha256 = "95137b461f59dd92d9895f024b27465c838cf62597e6eea91a331542fa377c04"

class TestAppendPagedKvCacheKv8D128Ps16(AppendPagedKvCacheBase):
    name = "append_paged_kv_cache_kv8_d128_ps16"  # model:llama-3.1-8b, tp:1
    axes = {"num_kv_heads": 8, "head_dim": 128, "page_size": 16}
    sha256 = "04a946366201eff98e1633f762f413bd185e2777d2db2883b7fcd4faa94994a2"

# model:llama-3.1-8b, model:mistral-7b-v0.1, model:minimax-m2, tp:1
class TestAppendPagedKvCacheKv8D128Ps64(AppendPagedKvCacheBase):
    name = "append_paged_kv_cache_kv8_d128_ps64"
    axes = {"num_kv_heads": 8, "head_dim": 128, "page_size": 64}
    sha256 = "a10c5680243c031762e266130f350e2c74dac2a04a65b1196c1dcfbb23ffeee0"

class TestAppendPagedKvCacheKv8D256Ps64(AppendPagedKvCacheBase):
    name = "append_paged_kv_cache_kv8_d256_ps64"  # model:gemma-2-9b, tp:1
    axes = {"num_kv_heads": 8, "head_dim": 256, "page_size": 64}
    sha256 = "46a6986929902b19f0ee379f372889190a439a29ca6fc97d3f2c33160f939f99"

# model:gpt-oss-120b, model:gpt-oss-20b, tp:1
class TestAppendPagedKvCacheKv8D64Ps64(AppendPagedKvCacheBase):
    name = "append_paged_kv_cache_kv8_d64_ps64"
    axes = {"num_kv_heads": 8, "head_dim": 64, "page_size": 64}
    sha256 = "4de4de342456e08bbc20de1bd7091169cc10904fbec40478f51babf83abc8f25"


# Append compressed keys and values, and their rotary part, to the paged cache of latent
# attention. Row i belongs at token positions[i] of sequence batch_indices[i], which is
# slot position % page_size of page kv_indices[kv_indptr[b] + position // page_size].
# The outputs are the whole caches: slots that no row is for keep what they hold. Rows
# may come in any order; no two have the same slot. A batch index of -1, which
# FlashInfer's get_batch_indices_positions pads with, is not allowed: the kernel reads
# in front of kv_indptr for it.
# model:deepseek-v3, model:deepseek-r1, model:kimi-k2,
# fi_api:flashinfer.page.append_paged_mla_kv_cache, tp:1
# Tolerances:
#   output         source              rtol   atol  NMSE  reason
#   ckv_cache_out  oracle, flashinfer  exact              (1)
#   kpe_cache_out  oracle, flashinfer  exact              (1)
def reference_append_paged_mla_kv_cache():
    import torch


    @torch.no_grad()
    def run(
        append_ckv: torch.Tensor,
        append_kpe: torch.Tensor,
        batch_indices: torch.Tensor,
        positions: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_last_page_len: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        page_size = ckv_cache.shape[1]
        # A sequence's pages stand one after the other in kv_indices.
        pages = kv_indices[kv_indptr[batch_indices] + positions // page_size]
        slots = positions % page_size

        ckv_cache_out, kpe_cache_out = ckv_cache.clone(), kpe_cache.clone()
        ckv_cache_out[pages, slots] = append_ckv
        kpe_cache_out[pages, slots] = append_kpe
        return ckv_cache_out, kpe_cache_out

    return run


class TestAppendPagedMlaKvCacheCkv512Kpe64(PageAppendTests):
    name = "append_paged_mla_kv_cache_ckv512_kpe64"
    reference = staticmethod(reference_append_paged_mla_kv_cache)
    interface = INTERFACE_APPEND_PAGED_MLA_KV_CACHE
    axes = {"head_dim_ckv": 512, "head_dim_kpe": 64}
    sha256 = "3bfdb7fb296def8df29f1a37628faabf139fe3ba02ffb775eb4f9533ae73e51c"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
