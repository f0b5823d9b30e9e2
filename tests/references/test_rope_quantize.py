"""Reference tests of op_type rope_quantize.

Rendered: don't edit. `gen-tests --op-type rope_quantize` renders this file anew.

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

from generator.ops.far_factors import far_apart
from generator.ops.float8 import e4m3_values
from generator.ops.op_types.rope_quantize.inputs import axes_of, made_inputs
from generator.ops.op_types.rope_quantize.names import CACHES
from generator.ops.op_types.rope_quantize.relations import quantised_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.float8
# bounds: generator.ops.op_types.rope_quantize.names
# relations: generator.ops.op_types.rope_quantize.relations

_PARTS = ("q_rope", "k_rope", "q_nope", "k_nope")
TOLERANCES = tuple(
    Override(
        f"{name}_out",
        Tolerance(rtol=1.25e-1, atol=2e-3, nmse=1e-5),
        "both sides round nearly the same float32 value once to e4m3: to neighbours at "
        "most, 2^-3 apart, or 2^-9 below 2^-6; that happens to one in 10^5 elements, "
        "near ties, and to less than 1e-5 of the power in any case",
    )
    for name in (*_PARTS, *CACHES)
)
_RAGGED = tuple(Stream("appended").integers(8, 100, 6))
# lengths of sequences after and in the append, rows of cosines, scales of q and of k and v
_CASES: dict[str, tuple[str, tuple[tuple[int, int], ...], int, float, float]] = {
    "one-token": ("small", ((1, 1),), 64, 0.375, 2.5),
    "decode": ("small", ((17, 1), (64, 1), (65, 1), (1, 1)), 100, 3.0, 1.25),
    "later-chunks": ("small", ((80, 6), (0, 0), (66, 4), (3, 3)), 50, 12.5, 20.0),
    "saturated": ("small", ((70, 5),), 40, 100.0, 320.0),
    "subnormal": ("small", ((66, 4),), 40, 2**-8 * 1.25, 2**-8 * 1.75),
    "batch": (
        "medium",
        tuple((n, n % 7 + 1) for n in _RAGGED),
        4096,
        7.0,
        9.0,
    ),
    "past-limits": (
        LIMITS,
        ((2_100, 2_100), *[(400, 370)] * 17),
        (1 << 17) + 2_000,
        7.0,
        9.0,
    ),
    "long-batch": ("large", ((4096, 4096), (4200, 4096)), 163_840, 12.5, 20.0),
}


_ROWS = ("q_rope", "q_nope", "k_rope", "k_nope", "v")


def cases(definition: Definition) -> list[Case]:
    """Return single tokens, chunks, values beyond 448 and below 2^-6."""
    usual = [
        Case(
            name,
            size,
            axes_of(definition, lengths, rows),
            {"lengths": lengths, "scale_q": scale_q, "scale_kv": scale_kv},
        )
        for name, (size, lengths, rows, scale_q, scale_kv) in _CASES.items()
    ]
    (chunks,) = (case for case in usual if case.name == "later-chunks")
    scales = ("quant_scale_q", "quant_scale_kv")
    return [*usual, *far_apart(chunks, *scales, against=_ROWS, exponent=20.0)]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `made_inputs` for their shapes."""
    return made_inputs(definition, case, stream)


def oracle(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return the codes' values in float64, shaped as the outputs; row by row in caches."""
    row = inputs["cos_sin_cache"].double().index_select(0, inputs["pos_ids"])
    half = row.shape[1] // 2
    turn = torch.complex(row[:, :half], row[:, half:])
    real = torch.arange(half, device=row.device)
    imaginary = real + half
    if not definition.constants["is_neox"]:
        real, imaginary = 2 * real, 2 * real + 1

    def turned(name: str) -> torch.Tensor:
        out: torch.Tensor = inputs[name].double()
        # one number for all heads, if there are any
        by = turn[:, None] if out.dim() == 3 else turn
        numbers = torch.complex(out[..., real], out[..., imaginary]) * by
        out[..., real], out[..., imaginary] = numbers.real, numbers.imag
        return out

    of_q, of_kv = inputs["quant_scale_q"], inputs["quant_scale_kv"]
    results = {
        "q_rope": e4m3_values(turned("q_rope") * of_q),
        "q_nope": e4m3_values(inputs["q_nope"].double() * of_q),
        "k_rope": e4m3_values(turned("k_rope") * of_kv),
        "k_nope": e4m3_values(inputs["k_nope"].double() * of_kv),
    }
    if "kpe_cache" in inputs:
        written = {"ckv_cache": results["k_nope"], "kpe_cache": results["k_rope"]}
        results |= {n: _appended(inputs, n, rows) for n, rows in written.items()}
    elif "k_cache" in inputs:
        keys = torch.cat([results["k_rope"], results["k_nope"]], dim=-1)
        results["k_cache"] = _appended(inputs, "k_cache", keys)
        values = e4m3_values(inputs["v"].double() * of_kv)
        results["v_cache"] = _appended(inputs, "v_cache", values)
    outputs = definition.interface.outputs
    return tuple(results[name.removesuffix("_out")] for name in outputs)


def _appended(inputs: dict[str, Any], name: str, rows: torch.Tensor) -> torch.Tensor:
    cache: torch.Tensor = inputs[name].double()
    starts, pages = inputs["kv_indptr"].tolist(), inputs["kv_indices"].tolist()
    where = zip(
        inputs["batch_indices"].tolist(), inputs["positions"].tolist(), strict=True
    )
    for i, (sequence, position) in enumerate(where):
        page, slot = divmod(position, cache.shape[1])
        cache[pages[starts[sequence] + page], slot] = rows[i]
    return cache


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel of both styles."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return FlashInfer's e4m3 outputs; it writes to the caches that are given."""
    from flashinfer import rope

    tensors = [inputs[name] for name in _PARTS]
    options = {
        "is_neox": definition.constants["is_neox"],
        "quantize_dtype": torch.float8_e4m3fn,
        "quant_scale_q": inputs["quant_scale_q"],
        "quant_scale_kv": inputs["quant_scale_kv"],
    }
    where = (inputs["cos_sin_cache"], inputs["pos_ids"])
    caches = tuple(inputs[name] for name in CACHES if name in inputs)
    if not caches:
        mla = tensors[1].dim() == 2
        kernel = rope.mla_rope_quantize_fp8 if mla else rope.rope_quantize_fp8
        return kernel(*tensors, *where, **options)
    table = [
        inputs[name]
        for name in ("kv_indices", "kv_indptr", "batch_indices", "positions")
    ]
    q_rope_out, q_nope_out = rope.rope_quantize_fp8_append_paged_kv_cache(
        *tensors,
        inputs.get("v"),
        *where,
        caches,
        *table,
        page_size=definition.axes["page_size"],
        kv_layout="NHD",
        **options,
    )
    return q_rope_out, q_nope_out, *caches


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=quantised_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)


# ---- the interfaces

INTERFACE_MLA_ROPE_QUANTIZE_FP8_APPEND_PAGED_KV_CACHE_GPTJ = Interface(
    inputs={
        "q_rope": "bfloat16[num_tokens, num_qo_heads, rope_dim]",
        "k_rope": "bfloat16[num_tokens, rope_dim]",
        "q_nope": "bfloat16[num_tokens, num_qo_heads, nope_dim]",
        "k_nope": "bfloat16[num_tokens, nope_dim]",
        "cos_sin_cache": "float32[max_seq_len, rope_dim]",
        "pos_ids": "int32[num_tokens]",
        "ckv_cache": "float8_e4m3fn[num_pages, page_size, nope_dim]",
        "kpe_cache": "float8_e4m3fn[num_pages, page_size, rope_dim]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_indptr": "int32[len_indptr]",
        "batch_indices": "int32[num_tokens]",
        "positions": "int32[num_tokens]",
        "quant_scale_q": "float32",
        "quant_scale_kv": "float32",
    },
    outputs={
        "q_rope_out": "float8_e4m3fn[num_tokens, num_qo_heads, rope_dim]",
        "q_nope_out": "float8_e4m3fn[num_tokens, num_qo_heads, nope_dim]",
        "ckv_cache_out": "float8_e4m3fn[num_pages, page_size, nope_dim]",
        "kpe_cache_out": "float8_e4m3fn[num_pages, page_size, rope_dim]",
    },
    constraints=(
        "num_kv_indices == kv_indptr[-1].item()",
        "min(batch_indices.tolist()) >= 0",
        "max(batch_indices.tolist()) < len_indptr - 1",
        "min(positions.tolist()) >= 0",
        "quant_scale_q > 0",
        "quant_scale_kv > 0",
    ),
)
INTERFACE_MLA_ROPE_QUANTIZE_FP8_GPTJ = Interface(
    inputs={
        "q_rope": "bfloat16[num_tokens, num_qo_heads, rope_dim]",
        "k_rope": "bfloat16[num_tokens, rope_dim]",
        "q_nope": "bfloat16[num_tokens, num_qo_heads, nope_dim]",
        "k_nope": "bfloat16[num_tokens, nope_dim]",
        "cos_sin_cache": "float32[max_seq_len, rope_dim]",
        "pos_ids": "int32[num_tokens]",
        "quant_scale_q": "float32",
        "quant_scale_kv": "float32",
    },
    outputs={
        "q_rope_out": "float8_e4m3fn[num_tokens, num_qo_heads, rope_dim]",
        "k_rope_out": "float8_e4m3fn[num_tokens, rope_dim]",
        "q_nope_out": "float8_e4m3fn[num_tokens, num_qo_heads, nope_dim]",
        "k_nope_out": "float8_e4m3fn[num_tokens, nope_dim]",
    },
    constraints=("quant_scale_q > 0", "quant_scale_kv > 0"),
)
INTERFACE_ROPE_QUANTIZE_FP8_APPEND_PAGED_KV_CACHE_NEOX = Interface(
    inputs={
        "q_rope": "bfloat16[num_tokens, num_qo_heads, rope_dim]",
        "k_rope": "bfloat16[num_tokens, num_kv_heads, rope_dim]",
        "q_nope": "bfloat16[num_tokens, num_qo_heads, nope_dim]",
        "k_nope": "bfloat16[num_tokens, num_kv_heads, nope_dim]",
        "v": "bfloat16[num_tokens, num_kv_heads, head_dim]",
        "cos_sin_cache": "float32[max_seq_len, rope_dim]",
        "pos_ids": "int32[num_tokens]",
        "k_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_indptr": "int32[len_indptr]",
        "batch_indices": "int32[num_tokens]",
        "positions": "int32[num_tokens]",
        "quant_scale_q": "float32",
        "quant_scale_kv": "float32",
    },
    outputs={
        "q_rope_out": "float8_e4m3fn[num_tokens, num_qo_heads, rope_dim]",
        "q_nope_out": "float8_e4m3fn[num_tokens, num_qo_heads, nope_dim]",
        "k_cache_out": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache_out": "float8_e4m3fn[num_pages, page_size, num_kv_heads, head_dim]",
    },
    constraints=(
        "head_dim == rope_dim + nope_dim",
        "num_kv_indices == kv_indptr[-1].item()",
        "min(batch_indices.tolist()) >= 0",
        "max(batch_indices.tolist()) < len_indptr - 1",
        "min(positions.tolist()) >= 0",
        "quant_scale_q > 0",
        "quant_scale_kv > 0",
    ),
)
INTERFACE_ROPE_QUANTIZE_FP8_NEOX = INTERFACE_MLA_ROPE_QUANTIZE_FP8_GPTJ.but(
    inputs={
        "k_rope": "bfloat16[num_tokens, num_kv_heads, rope_dim]",
        "k_nope": "bfloat16[num_tokens, num_kv_heads, nope_dim]",
    },
    outputs={
        "k_rope_out": "float8_e4m3fn[num_tokens, num_kv_heads, rope_dim]",
        "k_nope_out": "float8_e4m3fn[num_tokens, num_kv_heads, nope_dim]",
    },
)

# ---- the tests


class RopeQuantizeTests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of rope_quantize share."""

    op_type = "rope_quantize"
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
# (1) both sides round nearly the same float32 value once to e4m3.


# Rotary embedding of latent attention, scaled to 8 bits. Dimension 2i of the rotary
# part turns with dimension 2i + 1. Then all are multiplied by the scale, cut off at
# 448, and rounded to e4m3 once: the turned dimensions stay in float32 before. Keys go
# to the caches of latents and of rotary parts. Row i belongs at token positions[i] of
# sequence batch_indices[i], which is slot position % page_size of page
# kv_indices[kv_indptr[b] + position // page_size]. The outputs are the whole caches:
# slots that no row is for keep what they hold.
# model:deepseek-v3, model:deepseek-r1,
# fi_api:flashinfer.rope.rope_quantize_fp8_append_paged_kv_cache, tp:8
# Tolerances:
#   output         source              rtol   atol   NMSE   reason
#   q_rope_out     oracle, flashinfer  0.125  0.002  1e-05  (1)
#   q_nope_out     oracle, flashinfer  0.125  0.002  1e-05  (1)
#   ckv_cache_out  oracle, flashinfer  0.125  0.002  1e-05  (1)
#   kpe_cache_out  oracle, flashinfer  0.125  0.002  1e-05  (1)
def reference_mla_rope_quantize_fp8_append_paged_kv_cache_gptj():
    import torch


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        # Dimension 2i turns with dimension 2i + 1; float32, not rounded before the scale.
        even, odd = x[..., 0::2].float(), x[..., 1::2].float()
        turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)
        return turned.flatten(-2)


    def quantised(x: torch.Tensor, scale: float) -> torch.Tensor:
        # Beyond 448, the largest value of e4m3, numbers are cut off.
        return (x.float() * scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)


    @torch.no_grad()
    def run(
        q_rope: torch.Tensor,
        k_rope: torch.Tensor,
        q_nope: torch.Tensor,
        k_nope: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        pos_ids: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_indptr: torch.Tensor,
        batch_indices: torch.Tensor,
        positions: torch.Tensor,
        quant_scale_q: float,
        quant_scale_kv: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        # A row of the cache is rope_dim // 2 cosines, then as many sines.
        cos, sin = cos_sin_cache[pos_ids].chunk(2, dim=-1)
        # All heads of a token turn alike.
        q_rope_out = quantised(rotated(q_rope, cos[:, None], sin[:, None]), quant_scale_q)
        k_rope_out = quantised(rotated(k_rope, cos, sin), quant_scale_kv)
        q_nope_out = quantised(q_nope, quant_scale_q)
        k_nope_out = quantised(k_nope, quant_scale_kv)

        page_size = ckv_cache.shape[1]
        # A sequence's pages stand one after the other in kv_indices.
        pages = kv_indices[kv_indptr[batch_indices] + positions // page_size]
        slots = positions % page_size
        ckv_cache_out, kpe_cache_out = ckv_cache.clone(), kpe_cache.clone()
        # Bytes are copied: torch has no indexed assignment of float8 everywhere.
        ckv_cache_out.view(torch.uint8)[pages, slots] = k_nope_out.view(torch.uint8)
        kpe_cache_out.view(torch.uint8)[pages, slots] = k_rope_out.view(torch.uint8)
        return q_rope_out, q_nope_out, ckv_cache_out, kpe_cache_out

    return run


class TestMlaRopeQuantizeFp8AppendPagedKvCacheGptjH16Rope64Nope512Ps64(
    RopeQuantizeTests
):
    name = "mla_rope_quantize_fp8_append_paged_kv_cache_gptj_h16_rope64_nope512_ps64"
    reference = staticmethod(reference_mla_rope_quantize_fp8_append_paged_kv_cache_gptj)
    interface = INTERFACE_MLA_ROPE_QUANTIZE_FP8_APPEND_PAGED_KV_CACHE_GPTJ
    axes = {"num_qo_heads": 16, "rope_dim": 64, "nope_dim": 512, "page_size": 64}
    constants = ("is_neox",)
    IS_NEOX = False  # "gptj" in the name
    sha256 = "0058ee59fafe77cb4d179dd2932987ce2ca83a05bf30fbc173644288ed9e6e3d"


# Rotary embedding of latent attention, scaled to 8 bits. Dimension 2i of the rotary
# part turns with dimension 2i + 1. Then all are multiplied by the scale, cut off at
# 448, and rounded to e4m3 once: the turned dimensions stay in float32 before.
# model:deepseek-v3, model:deepseek-r1, fi_api:flashinfer.rope.mla_rope_quantize_fp8,
# tp:8
# Tolerances:
#   output      source              rtol   atol   NMSE   reason
#   q_rope_out  oracle, flashinfer  0.125  0.002  1e-05  (1)
#   k_rope_out  oracle, flashinfer  0.125  0.002  1e-05  (1)
#   q_nope_out  oracle, flashinfer  0.125  0.002  1e-05  (1)
#   k_nope_out  oracle, flashinfer  0.125  0.002  1e-05  (1)
def reference_mla_rope_quantize_fp8_gptj():
    import torch


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        # Dimension 2i turns with dimension 2i + 1; float32, not rounded before the scale.
        even, odd = x[..., 0::2].float(), x[..., 1::2].float()
        turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)
        return turned.flatten(-2)


    def quantised(x: torch.Tensor, scale: float) -> torch.Tensor:
        # Beyond 448, the largest value of e4m3, numbers are cut off.
        return (x.float() * scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)


    @torch.no_grad()
    def run(
        q_rope: torch.Tensor,
        k_rope: torch.Tensor,
        q_nope: torch.Tensor,
        k_nope: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        pos_ids: torch.Tensor,
        quant_scale_q: float,
        quant_scale_kv: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        # A row of the cache is rope_dim // 2 cosines, then as many sines.
        cos, sin = cos_sin_cache[pos_ids].chunk(2, dim=-1)
        # All heads of a token turn alike.
        q_rope_out = quantised(rotated(q_rope, cos[:, None], sin[:, None]), quant_scale_q)
        k_rope_out = quantised(rotated(k_rope, cos, sin), quant_scale_kv)
        q_nope_out = quantised(q_nope, quant_scale_q)
        k_nope_out = quantised(k_nope, quant_scale_kv)
        return q_rope_out, k_rope_out, q_nope_out, k_nope_out

    return run


class TestMlaRopeQuantizeFp8GptjH16Rope64Nope512(RopeQuantizeTests):
    name = "mla_rope_quantize_fp8_gptj_h16_rope64_nope512"
    reference = staticmethod(reference_mla_rope_quantize_fp8_gptj)
    interface = INTERFACE_MLA_ROPE_QUANTIZE_FP8_GPTJ
    axes = {"num_qo_heads": 16, "rope_dim": 64, "nope_dim": 512}
    constants = ("is_neox",)
    IS_NEOX = False  # "gptj" in the name
    sha256 = "c8407a6f0944d454760f382b2af76eba46ee3517ff3ea2cb72c8e3efaf359c45"


# Rotary embedding of queries and keys, scaled to 8 bits. Dimension i of the rotary part
# turns with dimension i + rope_dim / 2. Then all are multiplied by the scale, cut off
# at 448, and rounded to e4m3 once: the turned dimensions stay in float32 before. Keys
# and values go to a cache of layout NHD; a key is its rotary part, then the part
# without position. Row i belongs at token positions[i] of sequence batch_indices[i],
# which is slot position % page_size of page kv_indices[kv_indptr[b] + position //
# page_size]. The outputs are the whole caches: slots that no row is for keep what they
# hold.
# model:minimax-m2, fi_api:flashinfer.rope.rope_quantize_fp8_append_paged_kv_cache, tp:1
# Tolerances:
#   output       source              rtol   atol   NMSE   reason
#   q_rope_out   oracle, flashinfer  0.125  0.002  1e-05  (1)
#   q_nope_out   oracle, flashinfer  0.125  0.002  1e-05  (1)
#   k_cache_out  oracle, flashinfer  0.125  0.002  1e-05  (1)
#   v_cache_out  oracle, flashinfer  0.125  0.002  1e-05  (1)
def reference_rope_quantize_fp8_append_paged_kv_cache_neox():
    import torch


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        # Dimension i turns with dimension i + rope_dim // 2; float32, not rounded before
        # the scale.
        first, second = x.float().chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


    def quantised(x: torch.Tensor, scale: float) -> torch.Tensor:
        # Beyond 448, the largest value of e4m3, numbers are cut off.
        return (x.float() * scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)


    @torch.no_grad()
    def run(
        q_rope: torch.Tensor,
        k_rope: torch.Tensor,
        q_nope: torch.Tensor,
        k_nope: torch.Tensor,
        v: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        pos_ids: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_indptr: torch.Tensor,
        batch_indices: torch.Tensor,
        positions: torch.Tensor,
        quant_scale_q: float,
        quant_scale_kv: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        # A row of the cache is rope_dim // 2 cosines, then as many sines.
        cos, sin = cos_sin_cache[pos_ids].chunk(2, dim=-1)
        # All heads of a token turn alike.
        q_rope_out = quantised(rotated(q_rope, cos[:, None], sin[:, None]), quant_scale_q)
        k_rope_out = quantised(rotated(k_rope, cos[:, None], sin[:, None]), quant_scale_kv)
        q_nope_out = quantised(q_nope, quant_scale_q)
        k_nope_out = quantised(k_nope, quant_scale_kv)

        page_size = k_cache.shape[1]
        # A sequence's pages stand one after the other in kv_indices.
        pages = kv_indices[kv_indptr[batch_indices] + positions // page_size]
        slots = positions % page_size
        k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
        # Bytes are copied: torch has no indexed assignment of float8 everywhere.
        # A key in the cache is its dimensions that turned, then those without position.
        key = torch.cat([k.view(torch.uint8) for k in (k_rope_out, k_nope_out)], dim=-1)
        k_cache_out.view(torch.uint8)[pages, slots] = key
        value = quantised(v, quant_scale_kv)
        v_cache_out.view(torch.uint8)[pages, slots] = value.view(torch.uint8)
        return q_rope_out, q_nope_out, k_cache_out, v_cache_out

    return run


class TestRopeQuantizeFp8AppendPagedKvCacheNeoxH48Kv8Rope64Nope64Ps64(
    RopeQuantizeTests
):
    name = "rope_quantize_fp8_append_paged_kv_cache_neox_h48_kv8_rope64_nope64_ps64"
    reference = staticmethod(reference_rope_quantize_fp8_append_paged_kv_cache_neox)
    interface = INTERFACE_ROPE_QUANTIZE_FP8_APPEND_PAGED_KV_CACHE_NEOX
    axes = {
        "num_qo_heads": 48,
        "num_kv_heads": 8,
        "rope_dim": 64,
        "nope_dim": 64,
        "head_dim": 128,
        "page_size": 64,
    }
    constants = ("is_neox",)
    IS_NEOX = True  # "neox" in the name
    sha256 = "f6d74b28e1080487b29ce3031c7f1436915cd0edbed8143eb294e4116ec87a41"


# Rotary embedding of queries and keys, scaled to 8 bits. Dimension i of the rotary part
# turns with dimension i + rope_dim / 2. Then all are multiplied by the scale, cut off
# at 448, and rounded to e4m3 once: the turned dimensions stay in float32 before.
# fi_api:flashinfer.rope.rope_quantize_fp8, tp:1
# Tolerances: those of reference_mla_rope_quantize_fp8_gptj.
def reference_rope_quantize_fp8_neox():
    import torch


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        # Dimension i turns with dimension i + rope_dim // 2; float32, not rounded before
        # the scale.
        first, second = x.float().chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


    def quantised(x: torch.Tensor, scale: float) -> torch.Tensor:
        # Beyond 448, the largest value of e4m3, numbers are cut off.
        return (x.float() * scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)


    @torch.no_grad()
    def run(
        q_rope: torch.Tensor,
        k_rope: torch.Tensor,
        q_nope: torch.Tensor,
        k_nope: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        pos_ids: torch.Tensor,
        quant_scale_q: float,
        quant_scale_kv: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        # A row of the cache is rope_dim // 2 cosines, then as many sines.
        cos, sin = cos_sin_cache[pos_ids].chunk(2, dim=-1)
        # All heads of a token turn alike.
        q_rope_out = quantised(rotated(q_rope, cos[:, None], sin[:, None]), quant_scale_q)
        k_rope_out = quantised(rotated(k_rope, cos[:, None], sin[:, None]), quant_scale_kv)
        q_nope_out = quantised(q_nope, quant_scale_q)
        k_nope_out = quantised(k_nope, quant_scale_kv)
        return q_rope_out, k_rope_out, q_nope_out, k_nope_out

    return run


class RopeQuantizeFp8NeoxBase(RopeQuantizeTests):
    reference = staticmethod(reference_rope_quantize_fp8_neox)
    interface = INTERFACE_ROPE_QUANTIZE_FP8_NEOX
    axes = {"num_kv_heads": 8, "rope_dim": 64, "nope_dim": 64}
    constants = ("is_neox",)
    IS_NEOX = True  # "neox" in the name

class TestRopeQuantizeFp8NeoxH48Kv8Rope64Nope64(RopeQuantizeFp8NeoxBase):
    name = "rope_quantize_fp8_neox_h48_kv8_rope64_nope64"  # model:minimax-m2
    axes = {"num_qo_heads": 48}
    sha256 = "7eeafe41a32781d106a9355222e1f1c2853bb917f4884bbfb4b03e93ed7f1ac3"

class TestRopeQuantizeFp8NeoxH96Kv8Rope64Nope64(RopeQuantizeFp8NeoxBase):
    name = "rope_quantize_fp8_neox_h96_kv8_rope64_nope64"  # model:glm-4.6
    axes = {"num_qo_heads": 96}
    sha256 = "cae6736015e3b2bd4ee363139bf8e24a8a1f52b3eaa83d8ea2f2cdd064d6afa2"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
