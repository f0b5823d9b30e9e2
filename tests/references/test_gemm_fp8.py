"""Reference tests of op_type gemm_fp8.

Rendered: don't edit. `gen-tests --op-type gemm_fp8` renders this file anew.

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
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.gemm_fp8.relations import gemm_fp8_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.gemm_fp8.relations

_ONCE = "float32 sums of elements of about 1, rounded once: half an ulp is 2^-8 at most"
_BLOCKS = (
    "Hopper's tensor cores keep 14 bits of a sum of 32 products, and kernels add four "
    "of these in float32: 4 * 2^-13 of a block's sum, 5e-4 of the RMS for all blocks; "
    "both sides round once, to neighbours at most"
)
_FAST = (
    "cuBLASLt is called with fast accumulation: sums of K up to 4096 keep 14 bits "
    "throughout, 128 additions of 2^-13 at most, 1.6e-2, and half of it on average; "
    "both sides round once"
)
# a case of one scale a tensor
_FEW = "two-products"
# scales of blocks over many exponents
_APART = "scales-apart"
TOLERANCES = (
    Override("out", Tolerance(4e-3, 2e-4, 5e-6), _ONCE, source="oracle"),
    Override("C", Tolerance(4e-3, 2e-4, 5e-6), _ONCE, source="oracle"),
    Override("out", Tolerance(8e-3, 4e-3, 5e-6), _BLOCKS),
    Override(
        "C",
        Tolerance(8e-3, 4e-4, 5e-6),
        "a sum of two products of up to 6 keeps 14 bits: 6·2^-14; both sides round once, "
        "to neighbours at most",
        case=_FEW,
    ),
    Override("C", Tolerance(1.6e-2, 2e-2, 1e-4), _FAST),
)
BLOCK = 128
# deviation of codes, whose bound is sqrt(6) of it; and RMS of scales of 1 to 4
_CODE_STD, _LARGEST, _SCALE_RMS = 100.0, 448.0, math.sqrt(7.0)


def cases(definition: Definition) -> list[Case]:
    """Return few and many rows, rows of zeros, and the largest codes.

    Of two products a row, kernels with fast accumulation lose nothing either: what is
    rounded before the scale shows.
    """
    cases = [
        Case("one-row", "small", {"M": 1}),
        Case("odd-rows", "small", {"M": 7}),
        Case("zero-rows", "small", {"M": 3}, {"zero_rows": 1}),
        Case("largest-codes", "small", {"M": 2}, {"largest": True}),
        Case("rows", "medium", {"M": 65}),
        past_limits("M", 8_219),
        Case("many-rows", "large", {"M": 2048}),
    ]
    if "A" in definition.interface.inputs:
        cases.append(Case(_FEW, "small", {"M": 2}, {"products": 2}))
        cases += far_codes(cases[1], A=1, A_scale=-1, B=1, B_scale=-1)
        return [*cases, *far_apart(cases[1], "A_scale", against=("B_scale",))]
    cases.append(Case(_APART, "small", {"M": 5}, {"exponents": 12}))
    cases += far_codes(cases[1], input=1, input_scale=-1, weight=1, weight_scale=-1)
    return [*cases, *far_apart(cases[1], "input_scale", against=("weight_scale",))]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return codes and scales of which the elements of the product are about 1.

    Codes are float8_e4m3fn up to 245, with `largest` all of them 448 or -448 in the
    activations. Scales of blocks are 1 to 4 times a unit, of 24 bits; with `exponents`
    each is divided by a power of two below 2^exponents.
    """
    m, axes = case.axes["M"], definition.axes
    n, k = axes["N"], axes["K"]
    batch = axes.get("batch_size", 1)
    x, size = stream.child("x").values((batch * m, k), _CODE_STD), _CODE_STD
    if case.params.get("largest"):
        size = _LARGEST
        x = torch.where(x < 0, -size, size)
    weight = stream.child("weight").matrix(batch * n, k, _CODE_STD, torch.float8_e4m3fn)
    x[: case.params.get("zero_rows", 0)] = 0.0
    products = case.params.get("products", k)
    x[:, products:] = 0.0
    x = x.to(torch.float8_e4m3fn)
    unit = (1.0 / size, 1.0 / (_CODE_STD * math.sqrt(products)))
    if "A" in definition.interface.inputs:
        shapes = ((batch, m, k), (batch, n, k))
        return {
            "A": x.view(shapes[0]),
            "B": weight.view(shapes[1]),
            "A_scale": 1.25 * unit[0],
            "B_scale": 0.75 * unit[1],
        }
    blocks, exponents = axes["num_k_blocks"], case.params.get("exponents", 1)
    return {
        "input": x,
        "weight": weight,
        "input_scale": _scales(
            stream.child("input_scale"), (m, blocks), unit[0], exponents
        ),
        "weight_scale": _scales(
            stream.child("weight_scale"),
            (axes["num_n_blocks"], blocks),
            unit[1],
            exponents,
        ),
    }


def _scales(
    stream: Stream, shape: tuple[int, int], size: float, exponents: int
) -> torch.Tensor:
    """Return float32 scales of RMS `size`, the largest four times the least.

    With more than one of `exponents`, each is divided by one of as many powers of two:
    from the least to the largest in equal steps, in any order, so that few scales are as
    far apart as many.
    """
    count = shape[0] * shape[1]
    drawn = stream.integer_tensor(0, 2**24, count).double() / 2**24
    scales = (1.0 + 3.0 * drawn) * (size / _SCALE_RMS)
    if exponents > 1:
        steps = torch.linspace(0.0, exponents - 1.0, count, dtype=torch.float64).round()
        scales = scales * 0.5 ** steps[stream.child("exponent").permutation(count)]
    return scales.float().view(shape)


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the products, float64: sums of codes first, then scales."""
    if "A" in inputs:
        factor = float(inputs["A_scale"]) * float(inputs["B_scale"])
        pairs = zip(inputs["A"], inputs["B"], strict=True)
        return torch.stack([a.double() @ b.double().mT * factor for a, b in pairs])
    x, weight = inputs["input"], inputs["weight"]
    of_rows, of_blocks = inputs["input_scale"].double(), inputs["weight_scale"].double()
    total = torch.zeros(len(x), len(weight), dtype=torch.float64, device=x.device)
    for block in range(of_rows.shape[1]):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        product = x[:, part].double() @ weight[:, part].double().T
        of_columns = of_blocks[:, block].repeat_interleave(BLOCK)[: len(weight)]
        total += product * of_rows[:, block, None] * of_columns
    return total


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return DeepGEMM for blocks, which is Hopper's alone, cuBLASLt for tensors."""
    if "A" in definition.interface.inputs:
        return (Backend("cublas", min_sm=89),)
    return (Backend("sm90", min_sm=90, max_sm=90),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call FlashInfer's kernel; return bfloat16 of the output's shape.

    The block-scaled kernel reads the scales of the input column by column, each padded
    to a multiple of four rows, whatever shape they have.
    """
    from flashinfer import gemm

    if backend == "cublas":
        a, b = inputs["A"], inputs["B"]
        scales = (torch.tensor([inputs[n]]) for n in ("A_scale", "B_scale"))
        on_device = (scale.float().to(a.device) for scale in scales)
        return gemm.bmm_fp8(a, b.mT, *on_device, torch.bfloat16, backend=backend)
    scale = inputs["input_scale"]
    padded = scale.new_zeros((scale.shape[1], -(-len(scale) // 4) * 4))
    padded[:, : len(scale)] = scale.T
    return gemm.fp8_blockscale_gemm_sm90(
        inputs["input"], inputs["weight"], padded, inputs["weight_scale"]
    )


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the Triton kernel for blocks; for tensors SGLang calls FlashInfer's."""
    if "A" in definition.interface.inputs:
        return ()
    return (Backend("triton", min_sm=89),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call SGLang's Triton kernel; return bfloat16 [M, N]."""
    from sglang.kernels.ops.gemm.fp8_kernel import w8a8_block_fp8_matmul_triton

    names = ("input", "weight", "input_scale", "weight_scale")
    tensors = [inputs[name] for name in names]
    return w8a8_block_fp8_matmul_triton(*tensors, [BLOCK, BLOCK], torch.bfloat16)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=gemm_fp8_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_BMM_FP8 = Interface(
    inputs={
        "A": "float8_e4m3fn[batch_size, M, K]",
        "B": "float8_e4m3fn[batch_size, N, K]",
        "A_scale": "float32",
        "B_scale": "float32",
    },
    outputs={"C": "bfloat16[batch_size, M, N]"},
)
INTERFACE_FP8_BLOCKSCALE_GEMM = Interface(
    inputs={
        "input": "float8_e4m3fn[M, K]",
        "weight": "float8_e4m3fn[N, K]",
        "input_scale": "float32[M, num_k_blocks]",
        "weight_scale": "float32[num_n_blocks, num_k_blocks]",
    },
    outputs={"out": "bfloat16[M, N]"},
    constraints=("num_k_blocks == K // 128", "num_n_blocks == (N + 127) // 128"),
)

# ---- the tests


class GemmFp8Tests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of gemm_fp8 share."""

    op_type = "gemm_fp8"
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
# (2) a sum of two products of up to 6 keeps 14 bits.
# (3) cuBLASLt is called with fast accumulation.
# (4) Hopper's tensor cores keep 14 bits of a sum of 32 products, and kernels add four
# of these in float32.


# A and B have one scale each. In float32, rounded to bfloat16 at the end. FlashInfer's
# bmm_fp8 takes B transposed.
# quantization:float8_e4m3fn, fi_api:flashinfer.gemm.bmm_fp8
# Tolerances:
#   output  source                              rtol   atol    NMSE    reason
#   C       oracle                              0.004  0.0002  5e-06   (1)
#   C       flashinfer, sglang in two-products  0.008  0.0004  5e-06   (2)
#   C       flashinfer, sglang                  0.016  0.02    0.0001  (3)
def reference_bmm_fp8():
    import torch


    @torch.no_grad()
    def run(
        A: torch.Tensor, B: torch.Tensor, A_scale: float, B_scale: float
    ) -> torch.Tensor:
        products = []
        # One batch at a time: float32 copies take four times the memory.
        for a, b in zip(A, B, strict=True):
            product = a.float() @ b.float().T
            products.append((product * (A_scale * B_scale)).to(torch.bfloat16))
        return torch.stack(products)

    return run


class BmmFp8Base(GemmFp8Tests):
    reference = staticmethod(reference_bmm_fp8)
    interface = INTERFACE_BMM_FP8

# The next 2: Matrix products C = A @ B.T of float8 values: outputs of batch_size heads
# from the latent space, 512 to 128 features.
# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestBmmFp8B128N128K512(BmmFp8Base):
    name = "bmm_fp8_b128_n128_k512"
    axes = {"batch_size": 128, "N": 128, "K": 512}
    sha256 = "23bb24de4fa0edb73298492c9465d5ace21522de0173e6ec752ad2426402e92b"

class TestBmmFp8B64N128K512(BmmFp8Base):
    name = "bmm_fp8_b64_n128_k512"  # model:kimi-k2
    axes = {"batch_size": 64, "N": 128, "K": 512}
    sha256 = "7024aaace712551f43fc135a73a4b64e6df5542611a43cde939e9e44bfccb58f"

# The next 2: Matrix products C = A @ B.T of float8 values: queries of batch_size heads
# into the latent space, 128 to 512 features.
# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestBmmFp8B128N512K128(BmmFp8Base):
    name = "bmm_fp8_b128_n512_k128"
    axes = {"batch_size": 128, "N": 512, "K": 128}
    sha256 = "29c573ecbb689d7bd19e902a861312267b1493430f920a32cd1fd95214f6fc95"

class TestBmmFp8B64N512K128(BmmFp8Base):
    name = "bmm_fp8_b64_n512_k128"  # model:kimi-k2
    axes = {"batch_size": 64, "N": 512, "K": 128}
    sha256 = "13035785a971ac561d2802a81ff49bb370a4569831c6274c237d2b2b009cdf7e"

# Matrix products C = A @ B.T of float8 values: gate and up, 4096 to 28672 features.
class TestBmmFp8B1N28672K4096(BmmFp8Base):
    name = "bmm_fp8_b1_n28672_k4096"  # model:llama-3.1-8b
    axes = {"batch_size": 1, "N": 28672, "K": 4096}
    sha256 = "f3a74857f2301faae885b2717a0bdbfc3231f7fd86a50528a7b0340dcb5d9653"

# Matrix products C = A @ B.T of float8 values: query, key and value, 4096 to 6144
# features.
class TestBmmFp8B1N6144K4096(BmmFp8Base):
    name = "bmm_fp8_b1_n6144_k4096"  # model:llama-3.1-8b
    axes = {"batch_size": 1, "N": 6144, "K": 4096}
    sha256 = "b1993fed24d29594b3c32694eec47c8e4e5d6b6086981a1037aa5dd41931f396"


# Each 128 elements of a row of the input share a scale, and each block of 128 x 128 of
# the weight. In float32, rounded to bfloat16 at the end.
# quantization:float8_e4m3fn, fi_api:flashinfer.gemm.fp8_blockscale_gemm_sm90
# Tolerances:
#   output  source              rtol   atol    NMSE   reason
#   out     oracle              0.004  0.0002  5e-06  (1)
#   out     flashinfer, sglang  0.008  0.004   5e-06  (4)
def reference_fp8_blockscale_gemm():
    import torch

    BLOCK = 128


    @torch.no_grad()
    def run(
        input: torch.Tensor,
        weight: torch.Tensor,
        input_scale: torch.Tensor,
        weight_scale: torch.Tensor,
    ) -> torch.Tensor:
        # A row of the input has a scale for each 128 elements.
        x = input.float() * input_scale.repeat_interleave(BLOCK, dim=1)
        columns = []
        # Rows of the weight a block at a time: a float32 copy of all may take gigabytes.
        for start in range(0, weight.shape[0], BLOCK):
            rows = weight[start : start + BLOCK].float()
            scales = weight_scale[start // BLOCK].repeat_interleave(BLOCK)
            columns.append((x @ (rows * scales).T).to(torch.bfloat16))
        return torch.cat(columns, dim=1)

    return run


class Fp8BlockscaleGemmBase(GemmFp8Tests):
    reference = staticmethod(reference_fp8_blockscale_gemm)
    interface = INTERFACE_FP8_BLOCKSCALE_GEMM

# The next 2: Matrix product out = input @ weight.T of float8 values: query projection,
# 1536 to N features.
class TestFp8BlockscaleGemmSm90N12288K1536(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n12288_k1536"  # model:kimi-k2
    axes = {"N": 12288, "K": 1536, "num_k_blocks": 12, "num_n_blocks": 96}
    sha256 = "7a583845e42317a1a56308fe14e42e6113c2cc2435b0445982e5cb84676b21d0"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestFp8BlockscaleGemmSm90N24576K1536(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n24576_k1536"
    axes = {"N": 24576, "K": 1536, "num_k_blocks": 12, "num_n_blocks": 192}
    sha256 = "91c4a9dbc552764f19e855c10e4a731db0edd7f80978994ebf665f4a3f2edadf"

# Matrix product out = input @ weight.T of float8 values: compression of the query, 7168
# to 1536 features.
# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2
class TestFp8BlockscaleGemmSm90N1536K7168(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n1536_k7168"
    axes = {"N": 1536, "K": 7168, "num_k_blocks": 56, "num_n_blocks": 12}
    sha256 = "ba1410dd33c0b8d9345f900f44692385b42dc94845e92e0cfb2426c863149bd6"

# The next 2: Matrix product out = input @ weight.T of float8 values: key and value
# projection, 512 to N features.
class TestFp8BlockscaleGemmSm90N16384K512(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n16384_k512"  # model:kimi-k2
    axes = {"N": 16384, "K": 512, "num_k_blocks": 4, "num_n_blocks": 128}
    sha256 = "0efcfc3daf2e136bfb523b623d25aae3d7a52c81352beaaaf3d62e28ff36c8d5"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestFp8BlockscaleGemmSm90N32768K512(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n32768_k512"
    axes = {"N": 32768, "K": 512, "num_k_blocks": 4, "num_n_blocks": 256}
    sha256 = "28c19f1d28234145d13cb1c9d843fc7f0a123799826332b436bbcee9bacc7184"

# The next 3: Matrix product out = input @ weight.T of float8 values: attention output
# projection, K to N features.
class TestFp8BlockscaleGemmSm90N3072K6144(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n3072_k6144"  # model:minimax-m2
    axes = {"N": 3072, "K": 6144, "num_k_blocks": 48, "num_n_blocks": 24}
    sha256 = "c084d21119612b3d2d866e9b242ed477a3b3eb8534992999d34d2fad641650a7"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestFp8BlockscaleGemmSm90N7168K16384(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n7168_k16384"
    axes = {"N": 7168, "K": 16384, "num_k_blocks": 128, "num_n_blocks": 56}
    sha256 = "a1ddfdb5587997fb41361eaf09972b5bf8d8301365b29037ad61bd0cdf9b59ea"

class TestFp8BlockscaleGemmSm90N7168K8192(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n7168_k8192"  # model:kimi-k2
    axes = {"N": 7168, "K": 8192, "num_k_blocks": 64, "num_n_blocks": 56}
    sha256 = "ff2825d6444006b19a807734e81e6893cfa473a1e04c995411b31c27e9c02667"

# Matrix product out = input @ weight.T of float8 values: fused gate and up projection
# of dense layers, 7168 to 36864 features.
# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2
class TestFp8BlockscaleGemmSm90N36864K7168(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n36864_k7168"
    axes = {"N": 36864, "K": 7168, "num_k_blocks": 56, "num_n_blocks": 288}
    sha256 = "b685e51d756d3cb6b47fd79cb09557d21686ec7abc6887dbfe98f28be266f840"

# Matrix product out = input @ weight.T of float8 values: fused gate and up projection
# of the shared expert, 7168 to 4096 features.
# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2
class TestFp8BlockscaleGemmSm90N4096K7168(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n4096_k7168"
    axes = {"N": 4096, "K": 7168, "num_k_blocks": 56, "num_n_blocks": 32}
    sha256 = "fe1e8d06880926d06f28cb3e1eba32c2ba1c2b89716fe5dc776f01a5766d0a3f"

# Matrix product out = input @ weight.T of float8 values: compression of key and value,
# 7168 to 576 features.
# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2
class TestFp8BlockscaleGemmSm90N576K7168(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n576_k7168"
    axes = {"N": 576, "K": 7168, "num_k_blocks": 56, "num_n_blocks": 5}
    sha256 = "ed75404b0e166183bc2e1435fe3f57e48eb01e0d57cb644cee8ac02de5fac324"

# Matrix product out = input @ weight.T of float8 values: down projection of dense
# layers, 18432 to 7168 features.
# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2
class TestFp8BlockscaleGemmSm90N7168K18432(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n7168_k18432"
    axes = {"N": 7168, "K": 18432, "num_k_blocks": 144, "num_n_blocks": 56}
    sha256 = "0d13abe7921ada8da59891785a7cd07cc1aced295263fcb365bd881f0b2d12e1"

# Matrix product out = input @ weight.T of float8 values: down projection of the shared
# expert, 2048 to 7168 features.
# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2
class TestFp8BlockscaleGemmSm90N7168K2048(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n7168_k2048"
    axes = {"N": 7168, "K": 2048, "num_k_blocks": 16, "num_n_blocks": 56}
    sha256 = "3d6d82e70284abf2f49aca48cd149247b6f1106d930b25f3af8cc3434b539af6"

# Matrix product out = input @ weight.T of float8 values: fused query, key and value
# projection, 3072 to 8192 features.
class TestFp8BlockscaleGemmSm90N8192K3072(Fp8BlockscaleGemmBase):
    name = "fp8_blockscale_gemm_sm90_n8192_k3072"  # model:minimax-m2
    axes = {"N": 8192, "K": 3072, "num_k_blocks": 24, "num_n_blocks": 64}
    sha256 = "9b6879525856f1bf23f79edb1acc281a21568fe380339fdfcf3a1e63c2bbfb89"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
