"""Reference tests of op_type grouped_gemm_fp8.

Rendered: don't edit. `gen-tests --op-type grouped_gemm_fp8` renders this file anew.

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

import math
import sys
from typing import Any

import torch

from generator.ops.far_factors import far_apart, far_codes
from generator.ops.op_types.grouped_gemm_fp8.relations import grouped_relations
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
# relations: generator.ops.op_types.grouped_gemm_fp8.relations

_ONCE = "float32 sums of elements of about 1, rounded once: half an ulp is 2^-8 at most"
_BLOCKS = (
    "tensor cores keep 14 bits of a sum of 32 products, and kernels add four of these in "
    "float32: 4 * 2^-13 of a block's sum, 5e-4 of the RMS for all blocks; both sides "
    "round once, to neighbours at most"
)
TOLERANCES = (
    Override("out", Tolerance(4e-3, 2e-4, 5e-6), _ONCE, source="oracle"),
    Override("out", Tolerance(8e-3, 4e-3, 5e-6), _BLOCKS),
)
BLOCK = 128
_CODE_STD, _SCALE_RMS = 100.0, math.sqrt(7.0)
# rows of the first experts, of the last one, and the size of each case
_ROWS: dict[str, tuple[str, tuple[int, ...], int]] = {
    "one-row": ("small", (1,), 0),
    "first-and-last": ("small", (3, 2), 1),
    "whole-blocks": ("medium", (128, 5), 128),
    "past-limits": (LIMITS, (8_200,), 3),
    "prefill": ("large", (300, 77, 512, 1), 129),
}
_MASKED: dict[str, tuple[str, tuple[int, ...], int]] = {
    "one-row": ("small", (1,), 0),
    "first-and-last": ("small", (3, 0), 2),
    "whole-blocks": ("medium", (128, 17), 5),
    "past-limits": (LIMITS, (1_030, 5), 3),
    "large-batch": ("large", (300, 77, 512, 1), 129),
}


def is_masked(definition: Definition) -> bool:
    """Return whether experts have places for rows."""
    return "masked_m" in definition.interface.inputs


def cases(definition: Definition) -> list[Case]:
    """Return few rows of the first and the last expert, whole blocks, and long groups."""
    table = _MASKED if is_masked(definition) else _ROWS
    usual = [
        case_of(definition, name, size, rows_of(definition, first, last))
        for name, (size, first, last) in table.items()
    ]
    return [
        *usual,
        *far_apart(usual[1], "a_scale", against=("b_scale",)),
        *far_codes(usual[1], a=1, a_scale=-1, b=1, b_scale=-1),
    ]


def rows_of(
    definition: Definition, first: tuple[int, ...], last: int
) -> tuple[int, ...]:
    """Return the rows of each expert, of which the middle ones have none."""
    experts = definition.axes["num_experts"]
    rows = [*first[: experts - 1], *[0] * experts][:experts]
    rows[-1] = last
    return tuple(rows)


def case_of(
    definition: Definition, name: str, size: str, rows: tuple[int, ...]
) -> Case:
    """Return the case of some rows an expert."""
    if is_masked(definition):
        longest = max(-(-max(rows) // 8) * 8, 8)
        return Case(name, size, {"max_m": longest}, {"rows": rows})
    padded = sum(-(-count // BLOCK) * BLOCK for count in rows)
    return Case(name, size, {"M": padded}, {"rows": rows})


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return codes and scales of which elements of the product are about 1.

    Rows that are padding have codes and scales as all others: nobody may add them.
    """
    axes, rows = definition.axes, case.params["rows"]
    experts, n, k = axes["num_experts"], axes["N"], axes["K"]
    k_blocks, n_blocks = k // BLOCK, n // BLOCK
    masked = is_masked(definition)
    shape = (experts, case.axes["max_m"]) if masked else (case.axes["M"],)
    count = math.prod(shape)
    x = stream.child("a").values((count, k), _CODE_STD, torch.float8_e4m3fn)
    weight = stream.child("b").matrix(experts * n, k, _CODE_STD, torch.float8_e4m3fn)
    x_scale = _scales(stream.child("a_scale"), count * k_blocks, 1.0 / _CODE_STD)
    unit = 1.0 / (_CODE_STD * math.sqrt(k))
    scale = _scales(stream.child("b_scale"), experts * n_blocks * k_blocks, unit)
    tensors = {
        "a": x.view(*shape, k),
        "b": weight.view(experts, n, k),
        "a_scale": x_scale.view(*shape, k_blocks),
        "b_scale": scale.view(experts, n_blocks, k_blocks),
    }
    if masked:
        return {**tensors, "masked_m": torch.tensor(rows, dtype=torch.int32)}
    named = [
        expert if row < number else -1
        for expert, number in enumerate(rows)
        for row in range(-(-number // BLOCK) * BLOCK)
    ]
    return {**tensors, "m_indices": torch.tensor(named, dtype=torch.int32)}


def _scales(stream: Stream, count: int, size: float) -> torch.Tensor:
    """Return float32 [count] of RMS `size`, the largest four times the least."""
    drawn = stream.integer_tensor(0, 2**24, count).double() / 2**24
    return ((1.0 + 3.0 * drawn) * (size / _SCALE_RMS)).float()


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the products, float64: sums of codes block by block, then their scales."""
    a, weights = inputs["a"], inputs["b"]
    if not is_masked(definition):
        chosen = inputs["m_indices"].long()
        total = torch.zeros(*a.shape[:1], weights.shape[1], dtype=torch.float64)
        total = total.to(a.device)
        for expert in sorted(set(chosen.tolist()) - {-1}):
            (places,) = torch.where(chosen == expert)
            total[places] = _product(inputs, expert, a, inputs["a_scale"], places)
        return total
    total = torch.zeros(*a.shape[:2], weights.shape[1], dtype=torch.float64)
    total = total.to(a.device)
    for expert, count in enumerate(inputs["masked_m"].tolist()):
        places = torch.arange(count, device=a.device)
        scales = inputs["a_scale"][expert]
        total[expert, places] = _product(inputs, expert, a[expert], scales, places)
    return total


def _product(
    inputs: dict[str, Any],
    expert: int,
    a: torch.Tensor,
    scales: torch.Tensor,
    places: torch.Tensor,
) -> torch.Tensor:
    """Return some rows times an expert's weight: float64 [places, N]."""
    weight = inputs["b"][expert].double()
    of_columns = inputs["b_scale"][expert].double().repeat_interleave(BLOCK, dim=0)
    codes, of_rows = a.double()[places], scales.double()[places]
    tensors = torch.zeros(
        len(places), len(weight), dtype=codes.dtype, device=codes.device
    )
    for block in range(of_rows.shape[1]):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        factors = of_rows[:, block, None] * of_columns[:, block]
        tensors += codes[:, part] @ weight[:, part].T * factors
    return tensors


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows that have an expert; of the masked kind an adapter clears others."""
    if is_masked(definition):
        return torch.ones(len(inputs["a"]), dtype=torch.bool)
    named: torch.Tensor = inputs["m_indices"] >= 0
    return named


_CLEARED = "outputs rewritten: rows that an expert has not are set to 0"


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return DeepGEMM as FlashInfer has it, for compute capability 10 alone."""
    rewrites = _CLEARED if is_masked(definition) else ""
    return (Backend("deepgemm", min_sm=100, max_sm=103, rewrites=rewrites),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call FlashInfer's kernel; return bfloat16 of the output's shape."""
    from flashinfer import gemm

    names = ("a", "b", "a_scale", "b_scale")
    tensors = [inputs[name] for name in names]
    if not is_masked(definition):
        return gemm.group_deepgemm_fp8_nt_groupwise(*tensors, inputs["m_indices"])
    counts = inputs["masked_m"]
    longest = inputs["a"].shape[1]
    out = gemm.batch_deepgemm_fp8_nt_groupwise(*tensors, counts, longest)
    return _cleared(out, counts, longest)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return DeepGEMM, which needs its own package."""
    rewrites = _CLEARED if is_masked(definition) else ""
    return (Backend("deepgemm", min_sm=90, needs=("deep_gemm",), rewrites=rewrites),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call DeepGEMM as SGLang does; return bfloat16 of the output's shape."""
    from sglang.srt.layers.deep_gemm_wrapper import entrypoint

    a, b = inputs["a"], inputs["b"]
    pairs = (a, inputs["a_scale"]), (b, inputs["b_scale"])
    shape = (*a.shape[:-1], b.shape[1])
    out = torch.empty(shape, dtype=torch.bfloat16, device=a.device)
    if not is_masked(definition):
        entrypoint.grouped_gemm_nt_f8f8bf16_contig(*pairs, out, inputs["m_indices"])
        return out
    counts, longest = inputs["masked_m"], a.shape[1]
    entrypoint.grouped_gemm_nt_f8f8bf16_masked(*pairs, out, counts, longest)
    return _cleared(out, counts, longest)


def _cleared(out: Any, counts: torch.Tensor, longest: int) -> Any:
    """Return the output with zeros in rows that an expert has not."""
    beyond = torch.arange(longest, device=counts.device) >= counts[:, None]
    return out.masked_fill(beyond[:, :, None], 0.0)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=grouped_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_GROUPED_GEMM_FP8_CONTIGUOUS = Interface(
    inputs={
        "a": "float8_e4m3fn[M, K]",
        "b": "float8_e4m3fn[num_experts, N, K]",
        "a_scale": "float32[M, num_k_blocks]",
        "b_scale": "float32[num_experts, num_n_blocks, num_k_blocks]",
        "m_indices": "int32[M]",
    },
    outputs={"out": "bfloat16[M, N]"},
    constraints=("num_k_blocks == K // 128", "num_n_blocks == N // 128"),
)
INTERFACE_GROUPED_GEMM_FP8_MASKED = Interface(
    inputs={
        "a": "float8_e4m3fn[num_experts, max_m, K]",
        "b": "float8_e4m3fn[num_experts, N, K]",
        "a_scale": "float32[num_experts, max_m, num_k_blocks]",
        "b_scale": "float32[num_experts, num_n_blocks, num_k_blocks]",
        "masked_m": "int32[num_experts]",
    },
    outputs={"out": "bfloat16[num_experts, max_m, N]"},
    constraints=("num_k_blocks == K // 128", "num_n_blocks == N // 128"),
)

# ---- the tests


class GroupedGemmFp8Tests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of grouped_gemm_fp8 share."""

    op_type = "grouped_gemm_fp8"
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
# (1) float32 sums of elements of about 1, rounded once.
# (2) tensor cores keep 14 bits of a sum of 32 products, and kernels add four of these
# in float32.


# Each 128 elements of a row share a scale, and each block of 128 x 128 of a weight. In
# float32, rounded to bfloat16 at the end. m_indices has the expert of each row; rows of
# an expert follow each other, in whole blocks of 128, of which those that pad have -1:
# there the output is 0 here, and kernels leave what they like.
# quantization:float8_e4m3fn, fi_api:flashinfer.gemm.group_deepgemm_fp8_nt_groupwise
# Tolerances:
#   output  source              rtol   atol    NMSE   reason
#   out     oracle              0.004  0.0002  5e-06  (1)
#   out     flashinfer, sglang  0.008  0.004   5e-06  (2)
def reference_grouped_gemm_fp8_contiguous():
    import torch

    BLOCK = 128


    @torch.no_grad()
    def run(
        a: torch.Tensor,
        b: torch.Tensor,
        a_scale: torch.Tensor,
        b_scale: torch.Tensor,
        m_indices: torch.Tensor,
    ) -> torch.Tensor:
        out = torch.zeros(a.shape[0], b.shape[1], dtype=torch.bfloat16, device=a.device)
        x = a.float() * a_scale.repeat_interleave(BLOCK, dim=1)
        # Rows of -1 are padding, which no expert has.
        for expert in range(b.shape[0]):
            rows = m_indices == expert
            if not rows.any():
                continue
            scales = b_scale[expert].repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
            weight = b[expert].float() * scales
            out[rows] = (x[rows] @ weight.T).to(torch.bfloat16)
        return out

    return run


class GroupedGemmFp8ContiguousBase(GroupedGemmFp8Tests):
    reference = staticmethod(reference_grouped_gemm_fp8_contiguous)
    interface = INTERFACE_GROUPED_GEMM_FP8_CONTIGUOUS

# Rows of float8 activations times the weight of their expert: gate and up projections
# of 16 of 128 experts, 2048 to 1536 features.
class TestGroupedGemmFp8ContiguousE16N1536K2048(GroupedGemmFp8ContiguousBase):
    name = "grouped_gemm_fp8_contiguous_e16_n1536_k2048"  # model:qwen3-30b-a3b, ep:8
    axes = {
        "num_experts": 16,
        "N": 1536,
        "K": 2048,
        "num_n_blocks": 12,
        "num_k_blocks": 16,
    }
    sha256 = "4d4af39f9c4db4636763d9cd1e60aef2efc5fea24c16d5fac98ee9a0cf129d25"

# Rows of float8 activations times the weight of their expert: gate and up projections
# of 4 of 256 experts, 7168 to 4096 features.
# model:deepseek-v3, model:deepseek-r1, ep:64
class TestGroupedGemmFp8ContiguousE4N4096K7168(GroupedGemmFp8ContiguousBase):
    name = "grouped_gemm_fp8_contiguous_e4_n4096_k7168"
    axes = {
        "num_experts": 4,
        "N": 4096,
        "K": 7168,
        "num_n_blocks": 32,
        "num_k_blocks": 56,
    }
    sha256 = "299b57da98f46fa2c9ad3b3565594a1761bbe93464b5014200f7ef239cb2d832"

# Rows of float8 activations times the weight of their expert: gate and up projections
# of 8 of 256 experts, 3072 to 3072 features.
class TestGroupedGemmFp8ContiguousE8N3072K3072(GroupedGemmFp8ContiguousBase):
    name = "grouped_gemm_fp8_contiguous_e8_n3072_k3072"  # model:minimax-m2, ep:32
    axes = {
        "num_experts": 8,
        "N": 3072,
        "K": 3072,
        "num_n_blocks": 24,
        "num_k_blocks": 24,
    }
    sha256 = "a9bb0722668475b4435f3626ffc6598070e4d9e18ee22d387fe79cd9b1414893"

# Rows of float8 activations times the weight of their expert: gate and up projections
# of 8 of 128 experts, 4096 to 3072 features.
class TestGroupedGemmFp8ContiguousE8N3072K4096(GroupedGemmFp8ContiguousBase):
    name = "grouped_gemm_fp8_contiguous_e8_n3072_k4096"  # model:qwen3-235b-a22b, ep:16
    axes = {
        "num_experts": 8,
        "N": 3072,
        "K": 4096,
        "num_n_blocks": 24,
        "num_k_blocks": 32,
    }
    sha256 = "7dc8421d81e687ddd0810805acd13dbd9dcd2ff930eadd3f227f7f46673105c9"

# Rows of float8 activations times the weight of their expert: down projections of 16 of
# 128 experts, 768 to 2048 features.
class TestGroupedGemmFp8ContiguousE16N2048K768(GroupedGemmFp8ContiguousBase):
    name = "grouped_gemm_fp8_contiguous_e16_n2048_k768"  # model:qwen3-30b-a3b, ep:8
    axes = {
        "num_experts": 16,
        "N": 2048,
        "K": 768,
        "num_n_blocks": 16,
        "num_k_blocks": 6,
    }
    sha256 = "88e0a2b6044ca79f1fc9f2cef85dd6cfdebef7a85133569bfe1a5dc416f0f3c0"

# Rows of float8 activations times the weight of their expert: down projections of 4 of
# 256 experts, 2048 to 7168 features.
# model:deepseek-v3, model:deepseek-r1, ep:64
class TestGroupedGemmFp8ContiguousE4N7168K2048(GroupedGemmFp8ContiguousBase):
    name = "grouped_gemm_fp8_contiguous_e4_n7168_k2048"
    axes = {
        "num_experts": 4,
        "N": 7168,
        "K": 2048,
        "num_n_blocks": 56,
        "num_k_blocks": 16,
    }
    sha256 = "53e1a532e7a9efca8b10bc0ce2d05e190c24e80b56fa943606e4db9d422e6227"

# Rows of float8 activations times the weight of their expert: down projections of 8 of
# 256 experts, 1536 to 3072 features.
class TestGroupedGemmFp8ContiguousE8N3072K1536(GroupedGemmFp8ContiguousBase):
    name = "grouped_gemm_fp8_contiguous_e8_n3072_k1536"  # model:minimax-m2, ep:32
    axes = {
        "num_experts": 8,
        "N": 3072,
        "K": 1536,
        "num_n_blocks": 24,
        "num_k_blocks": 12,
    }
    sha256 = "363b1b8ba971cf31f5a036e8fcf36d9935f6c7b64e8e34e3a5a723246d1e0048"

# Rows of float8 activations times the weight of their expert: down projections of 8 of
# 128 experts, 1536 to 4096 features.
class TestGroupedGemmFp8ContiguousE8N4096K1536(GroupedGemmFp8ContiguousBase):
    name = "grouped_gemm_fp8_contiguous_e8_n4096_k1536"  # model:qwen3-235b-a22b, ep:16
    axes = {
        "num_experts": 8,
        "N": 4096,
        "K": 1536,
        "num_n_blocks": 32,
        "num_k_blocks": 12,
    }
    sha256 = "681d6a77ec4102a169bbe475fdae9c5b72bb5511c9b446189b0e9eb17d690761"


# Each 128 elements of a row share a scale, and each block of 128 x 128 of a weight. In
# float32, rounded to bfloat16 at the end. An expert has max_m places, and its first
# masked_m rows are there; beyond them the output is 0 here, and kernels leave what they
# like.
# quantization:float8_e4m3fn, fi_api:flashinfer.gemm.batch_deepgemm_fp8_nt_groupwise
# Tolerances: those of reference_grouped_gemm_fp8_contiguous.
def reference_grouped_gemm_fp8_masked():
    import torch

    BLOCK = 128


    @torch.no_grad()
    def run(
        a: torch.Tensor,
        b: torch.Tensor,
        a_scale: torch.Tensor,
        b_scale: torch.Tensor,
        masked_m: torch.Tensor,
    ) -> torch.Tensor:
        size = (a.shape[0], a.shape[1], b.shape[1])
        out = torch.zeros(size, dtype=torch.bfloat16, device=a.device)
        for expert, count in enumerate(masked_m.tolist()):
            x_scales = a_scale[expert, :count].repeat_interleave(BLOCK, dim=1)
            x = a[expert, :count].float() * x_scales
            scales = b_scale[expert].repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
            weight = b[expert].float() * scales
            out[expert, :count] = (x @ weight.T).to(torch.bfloat16)
        return out

    return run


class GroupedGemmFp8MaskedBase(GroupedGemmFp8Tests):
    reference = staticmethod(reference_grouped_gemm_fp8_masked)
    interface = INTERFACE_GROUPED_GEMM_FP8_MASKED

# Rows of float8 activations times the weight of their expert: gate and up projections
# of 16 of 128 experts, 2048 to 1536 features.
class TestGroupedGemmFp8MaskedE16N1536K2048(GroupedGemmFp8MaskedBase):
    name = "grouped_gemm_fp8_masked_e16_n1536_k2048"  # model:qwen3-30b-a3b, ep:8
    axes = {
        "num_experts": 16,
        "N": 1536,
        "K": 2048,
        "num_n_blocks": 12,
        "num_k_blocks": 16,
    }
    sha256 = "af0d6d624ffa64f9622998a0ed53852dd4a5f7c85824c92d54126485deb8ac35"

# Rows of float8 activations times the weight of their expert: gate and up projections
# of 4 of 256 experts, 7168 to 4096 features.
# model:deepseek-v3, model:deepseek-r1, ep:64
class TestGroupedGemmFp8MaskedE4N4096K7168(GroupedGemmFp8MaskedBase):
    name = "grouped_gemm_fp8_masked_e4_n4096_k7168"
    axes = {
        "num_experts": 4,
        "N": 4096,
        "K": 7168,
        "num_n_blocks": 32,
        "num_k_blocks": 56,
    }
    sha256 = "5e78ee97b448d42d63947b372e78f59ffc530ca40cb005517500e16a821aed6d"

# Rows of float8 activations times the weight of their expert: gate and up projections
# of 8 of 256 experts, 3072 to 3072 features.
class TestGroupedGemmFp8MaskedE8N3072K3072(GroupedGemmFp8MaskedBase):
    name = "grouped_gemm_fp8_masked_e8_n3072_k3072"  # model:minimax-m2, ep:32
    axes = {
        "num_experts": 8,
        "N": 3072,
        "K": 3072,
        "num_n_blocks": 24,
        "num_k_blocks": 24,
    }
    sha256 = "503ba4576a1cea40257d57d0bed10466d65632cfa79465fbe4db2f49832c101b"

# Rows of float8 activations times the weight of their expert: gate and up projections
# of 8 of 128 experts, 4096 to 3072 features.
class TestGroupedGemmFp8MaskedE8N3072K4096(GroupedGemmFp8MaskedBase):
    name = "grouped_gemm_fp8_masked_e8_n3072_k4096"  # model:qwen3-235b-a22b, ep:16
    axes = {
        "num_experts": 8,
        "N": 3072,
        "K": 4096,
        "num_n_blocks": 24,
        "num_k_blocks": 32,
    }
    sha256 = "0997c63bdd048a8c23682f7313de426d27357df9c4528aec9164597a1a78b569"

# Rows of float8 activations times the weight of their expert: down projections of 16 of
# 128 experts, 768 to 2048 features.
class TestGroupedGemmFp8MaskedE16N2048K768(GroupedGemmFp8MaskedBase):
    name = "grouped_gemm_fp8_masked_e16_n2048_k768"  # model:qwen3-30b-a3b, ep:8
    axes = {
        "num_experts": 16,
        "N": 2048,
        "K": 768,
        "num_n_blocks": 16,
        "num_k_blocks": 6,
    }
    sha256 = "96e94ab392c5a9f2071d11cf1152b3ebf9639daf6bb9bb2b7c4a04ef8cfae179"

# Rows of float8 activations times the weight of their expert: down projections of 4 of
# 256 experts, 2048 to 7168 features.
# model:deepseek-v3, model:deepseek-r1, ep:64
class TestGroupedGemmFp8MaskedE4N7168K2048(GroupedGemmFp8MaskedBase):
    name = "grouped_gemm_fp8_masked_e4_n7168_k2048"
    axes = {
        "num_experts": 4,
        "N": 7168,
        "K": 2048,
        "num_n_blocks": 56,
        "num_k_blocks": 16,
    }
    sha256 = "070109c2f0458b22b4b6e48970d3ab8dca42eef255823e3ee55ce954f6d85148"

# Rows of float8 activations times the weight of their expert: down projections of 8 of
# 256 experts, 1536 to 3072 features.
class TestGroupedGemmFp8MaskedE8N3072K1536(GroupedGemmFp8MaskedBase):
    name = "grouped_gemm_fp8_masked_e8_n3072_k1536"  # model:minimax-m2, ep:32
    axes = {
        "num_experts": 8,
        "N": 3072,
        "K": 1536,
        "num_n_blocks": 24,
        "num_k_blocks": 12,
    }
    sha256 = "cbae1700924c4c408fd1343f23a785aa79196fe608fc20e928ad9cba785910c0"

# Rows of float8 activations times the weight of their expert: down projections of 8 of
# 128 experts, 1536 to 4096 features.
class TestGroupedGemmFp8MaskedE8N4096K1536(GroupedGemmFp8MaskedBase):
    name = "grouped_gemm_fp8_masked_e8_n4096_k1536"  # model:qwen3-235b-a22b, ep:16
    axes = {
        "num_experts": 8,
        "N": 4096,
        "K": 1536,
        "num_n_blocks": 32,
        "num_k_blocks": 12,
    }
    sha256 = "90200748fc4895a4a3eed799f3903de03c32bb7b0208d8ab3f0c50b2f7ce0b6a"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
