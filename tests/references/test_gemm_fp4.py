"""Reference tests of op_type gemm_fp4.

Rendered: don't edit. `gen-tests --op-type gemm_fp4` renders this file anew.

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

import math
import sys
from typing import Any

import torch

from generator.ops.far_factors import far_apart, with_factors
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.gemm_fp4.layouts import places, random_bytes, swizzled
from generator.ops.op_types.gemm_fp4.relations import fp4_relations
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
# oracle: generator.ops.op_types.gemm_fp4.layouts
# relations: generator.ops.op_types.gemm_fp4.relations

_ONCE = "float32 sums of elements of about 1, rounded once: half an ulp is 2^-8 at most"
_BOTH = (
    "float32 sums in another order; both sides round once, to neighbours at most: 2^-7"
)
TOLERANCES = (
    Override("out", Tolerance(4e-3, 2e-4, 5e-6), _ONCE, source="oracle"),
    Override("out", Tolerance(8e-3, 4e-4, 5e-6), _BOTH),
)
# of e2m1 codes that are equally frequent
_MEAN_SQUARE = 8.5625
_LEAST, _MOST = 8.0, 32.0
# powers of two by which scales of e4m3 are mostly subnormal
SMALL_SCALES = {"a_scale": -12.0, "b_scale": -12.0, "alpha": 24.0}
# the bit of a code that is its sign
_SIGN = 8


def is_swizzled(definition: Definition) -> bool:
    """Return whether scales lie in tiles."""
    return "padded_m" in (definition.interface.input_specs["a_scale"].shape or ())


def is_mx(definition: Definition) -> bool:
    """Return whether scales are powers of two."""
    return "alpha" not in definition.interface.inputs


def cases(definition: Definition) -> list[Case]:
    """Return few rows, more than a tile has, the largest codes, and many rows."""
    tables: list[tuple[str, str, int, dict[str, Any]]] = [
        ("one-row", "small", 1, {}),
        ("odd-rows", "small", 7, {}),
        ("largest-codes", "small", 2, {"largest": True}),
        ("two-tiles", "medium", 130, {}),
        ("many-rows", "large", 2048, {}),
    ]
    if is_swizzled(definition):
        tables.append(("past-limits", LIMITS, 8_219, {}))
        usual = [Case(name, size, tiled(m), more) for name, size, m, more in tables]
    else:
        usual = [Case(name, size, {"M": m}, more) for name, size, m, more in tables]
        usual.append(past_limits("M", 8_219))
    return [*usual, *_far_apart(definition, usual[1])]


def _far_apart(definition: Definition, case: Case) -> list[Case]:
    """Return a case with scales far from the usual, in e4m3 up to its largest, 448."""
    if is_mx(definition):
        # beyond float16, and what it makes of scales around its largest
        return far_apart(case, "a_scale", against=("b_scale",), exponent=40.0)
    # 32 times 2^3.8 is 446
    up = {"a_scale": 3.8, "b_scale": 3.8, "alpha": -9.0}
    return [
        with_factors(case, "factors-up", **up),
        with_factors(case, "factors-down", **SMALL_SCALES),
    ]


def tiled(rows: int) -> dict[str, int]:
    """Return the axes of a case whose scales lie in whole tiles."""
    return {"M": rows, "padded_m": -(-rows // 128) * 128}


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return random codes, and scales of which elements of the product are about 1.

    Scales of rows that pad a tile are the largest that there are.
    """
    m, n, k = case.axes["M"], definition.axes["N"], 2 * definition.axes["bytes_k"]
    blocks = definition.axes["num_k_blocks"]
    a = random_bytes(stream.child("a"), m, k // 2)
    if case.params.get("largest"):
        # 6 or -6
        a = a | 0x77
    tensors: dict[str, Any] = {
        "a": a,
        "b": random_bytes(stream.child("b"), n, k // 2),
    }
    size = _MEAN_SQUARE * math.sqrt(k)
    if is_mx(definition):
        middle = 127 - round(math.log2(size))
        return {
            **tensors,
            "a_scale": _exponents(stream.child("a_scale"), m, blocks, 127),
            "b_scale": _exponents(stream.child("b_scale"), n, blocks, middle),
        }
    padded = case.axes.get("padded_m", m)
    scales = _scales(stream.child("a_scale"), padded, blocks)
    scales[m:] = 448.0
    pair = [scales, _scales(stream.child("b_scale"), n, blocks)]
    if is_swizzled(definition):
        pair = [swizzled(scale) for scale in pair]
    alpha = 1.0 / (size * 21.0**2)
    tensors |= zip(
        ("a_scale", "b_scale"), (s.to(torch.float8_e4m3fn) for s in pair), strict=True
    )
    return {**tensors, "alpha": torch.tensor(alpha)}


def _exponents(stream: Stream, rows: int, blocks: int, middle: int) -> torch.Tensor:
    """Return bytes of powers of two around one, two down and one up."""
    drawn = stream.integer_tensor(middle - 2, middle + 2, rows * blocks)
    return drawn.to(torch.uint8).view(torch.int8).view(rows, blocks)


def _scales(stream: Stream, rows: int, blocks: int) -> torch.Tensor:
    drawn = stream.integer_tensor(0, 2**16, rows * blocks).float() / 2**16
    return (_LEAST + (_MOST - _LEAST) * drawn).view(rows, blocks)


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the product, float64 [M, N]: sums of each block first, then its scales."""
    codes = _decoded(inputs["a"]), _decoded(inputs["b"])
    blocks = definition.axes["num_k_blocks"]
    width = 2 * definition.axes["bytes_k"] // blocks
    pair = [_factors(definition, inputs[f"{name}_scale"]) for name in ("a", "b")]
    total = torch.zeros(len(codes[0]), len(codes[1]), dtype=torch.float64)
    total = total.to(codes[0].device)
    for block in range(blocks):
        part = slice(block * width, (block + 1) * width)
        rows, columns = pair[0][: len(total), block, None], pair[1][:, block]
        total += codes[0][:, part] @ codes[1][:, part].T * rows * columns
    return total * float(inputs.get("alpha", 1.0))


def _decoded(packed: torch.Tensor) -> torch.Tensor:
    """Return values of e2m1 by its bits: float64 [rows, 2 · bytes]."""
    octets = packed.view(torch.uint8)
    code = torch.stack((octets % 16, octets // 16), dim=2).flatten(1).int()
    exponent, mantissa = (code >> 1) % 4, code % 2
    hidden = (exponent > 0).int()
    size = torch.ldexp((2 * hidden + mantissa).double() / 2, exponent.clamp_min(1) - 1)
    return torch.where(code < _SIGN, size, -size)


def _factors(definition: Definition, scale: torch.Tensor) -> torch.Tensor:
    """Return the factor of each block of each row, float64."""
    if is_mx(definition):
        return torch.ldexp(
            torch.ones(scale.shape, dtype=torch.float64, device=scale.device),
            scale.view(torch.uint8).int() - 127,
        )
    wide = scale.double()
    if not is_swizzled(definition):
        return wide
    return wide.flatten()[places(*scale.shape).to(scale.device)]


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return CUTLASS's kernel for scales in tiles, of compute capability 10 on."""
    if is_swizzled(definition):
        return (Backend("cutlass", min_sm=100),)
    return ()


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call FlashInfer's product; return bfloat16 [M, N]."""
    from flashinfer.gemm import mm_fp4

    a, b = (inputs[name].view(torch.uint8) for name in ("a", "b"))
    scales = [inputs[name].view(torch.uint8) for name in ("a_scale", "b_scale")]
    alpha = inputs["alpha"].view(1)
    out = torch.bfloat16
    return mm_fp4(a, b.T, scales[0], scales[1].T, alpha, out, backend=backend)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=fp4_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)


# ---- the interfaces

INTERFACE_MXFP4_GEMM = Interface(
    inputs={
        "a": "int8[M, bytes_k]",
        "b": "int8[N, bytes_k]",
        "a_scale": "int8[M, num_k_blocks]",
        "b_scale": "int8[N, num_k_blocks]",
    },
    outputs={"out": "bfloat16[M, N]"},
    constraints=("num_k_blocks == bytes_k // 16",),
)
INTERFACE_NVFP4_GEMM = Interface(
    inputs={
        "a": "int8[M, bytes_k]",
        "b": "int8[N, bytes_k]",
        "a_scale": "float8_e4m3fn[M, num_k_blocks]",
        "b_scale": "float8_e4m3fn[N, num_k_blocks]",
        "alpha": "float32[]",
    },
    outputs={"out": "bfloat16[M, N]"},
    constraints=("num_k_blocks == bytes_k // 8",),
)
INTERFACE_NVFP4_GEMM_SWIZZLED = INTERFACE_NVFP4_GEMM.but(
    inputs={"a_scale": "float8_e4m3fn[padded_m, num_k_blocks]"},
    also=("padded_m == (M + 127) // 128 * 128",),
)

# ---- the tests


class GemmFp4Tests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of gemm_fp4 share."""

    op_type = "gemm_fp4"
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
# (2) float32 sums in another order.


# Each 32 codes of a row share a power of two, whose exponent plus 127 is the scale's
# byte, row by row. In float32, rounded to bfloat16 at the end. Kernels are of compute
# capability 10 and later.
# model:llama-3.3-70b, quantization:mxfp4, gpu:sm100, layout:linear, tp:8
# Tolerances:
#   output  source      rtol   atol    NMSE   reason
#   out     oracle      0.004  0.0002  5e-06  (1)
#   out     flashinfer  0.008  0.0004  5e-06  (2)
def reference_mxfp4_gemm():
    import torch

    BLOCK = 32
    BIAS = 127
    # e2m1: a sign, two bits of exponent, one of mantissa
    VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


    def values(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        octets = codes.view(torch.uint8)
        # the first of two codes is in the lower half
        pairs = torch.stack((octets & 15, octets >> 4), dim=2).flatten(1).long()
        table = torch.tensor(VALUES, device=codes.device)
        table = torch.cat((table, -table))
        return table[pairs] * scale.repeat_interleave(BLOCK, dim=1)


    @torch.no_grad()
    def run(
        a: torch.Tensor,
        b: torch.Tensor,
        a_scale: torch.Tensor,
        b_scale: torch.Tensor,
    ) -> torch.Tensor:
        x_scale = torch.exp2(a_scale.view(torch.uint8).float() - BIAS)
        w_scale = torch.exp2(b_scale.view(torch.uint8).float() - BIAS)
        x = values(a, x_scale)
        columns = []
        # Rows of the weight a block at a time: float32 takes eight times the memory.
        for start in range(0, b.shape[0], 1024):
            rows = slice(start, start + 1024)
            columns.append(x @ values(b[rows], w_scale[rows]).T)
        return torch.cat(columns, dim=1).to(torch.bfloat16)

    return run


class Mxfp4GemmBase(GemmFp4Tests):
    reference = staticmethod(reference_mxfp4_gemm)
    interface = INTERFACE_MXFP4_GEMM
    constants = ("K",)

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: fused query, key and value projection, 8192 to 1280 features.
class TestMxfp4GemmN1280K8192(Mxfp4GemmBase):
    name = "mxfp4_gemm_n1280_k8192"
    axes = {"N": 1280, "bytes_k": 4096, "num_k_blocks": 256}
    K = 8192  # "k8192" in the name
    sha256 = "26ff3956d6fe6b646e0037710ec5dc7e3da47bf7679a80bd3a99699519cb92c7"

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: fused gate and up projection, 8192 to 7168 features.
class TestMxfp4GemmN7168K8192(Mxfp4GemmBase):
    name = "mxfp4_gemm_n7168_k8192"
    axes = {"N": 7168, "bytes_k": 4096, "num_k_blocks": 256}
    K = 8192  # "k8192" in the name
    sha256 = "582b3e37e11fee76c0b75e1d8196c8701692a2d3ed0b3686f9110de406df470a"

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: attention output projection, 1024 to 8192 features.
class TestMxfp4GemmN8192K1024(Mxfp4GemmBase):
    name = "mxfp4_gemm_n8192_k1024"
    axes = {"N": 8192, "bytes_k": 512, "num_k_blocks": 32}
    K = 1024  # "k1024" in the name
    sha256 = "5881698d8e07d63a1a18b7d16211fc06a89b8fbb1809c18d797530f101a7def8"

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: down projection, 3584 to 8192 features.
class TestMxfp4GemmN8192K3584(Mxfp4GemmBase):
    name = "mxfp4_gemm_n8192_k3584"
    axes = {"N": 8192, "bytes_k": 1792, "num_k_blocks": 112}
    K = 3584  # "k3584" in the name
    sha256 = "1b62e7aff9a0151da69f4683edf085d6c54849a3445a358ec79e94cadbc6482e"


# Each 16 codes of a row share a float8_e4m3fn scale, row by row, and alpha multiplies
# the product. In float32, rounded to bfloat16 at the end. Kernels are of compute
# capability 10 and later.
# model:llama-3.3-70b, quantization:nvfp4, gpu:sm100, layout:linear, tp:8
# Tolerances: those of reference_mxfp4_gemm.
def reference_nvfp4_gemm():
    import torch

    BLOCK = 16
    # e2m1: a sign, two bits of exponent, one of mantissa
    VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


    def values(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        octets = codes.view(torch.uint8)
        # the first of two codes is in the lower half
        pairs = torch.stack((octets & 15, octets >> 4), dim=2).flatten(1).long()
        table = torch.tensor(VALUES, device=codes.device)
        table = torch.cat((table, -table))
        return table[pairs] * scale.repeat_interleave(BLOCK, dim=1)


    @torch.no_grad()
    def run(
        a: torch.Tensor,
        b: torch.Tensor,
        a_scale: torch.Tensor,
        b_scale: torch.Tensor,
        alpha: torch.Tensor,
    ) -> torch.Tensor:
        x_scale = a_scale.float()
        w_scale = b_scale.float()
        x = values(a, x_scale)
        columns = []
        # Rows of the weight a block at a time: float32 takes eight times the memory.
        for start in range(0, b.shape[0], 1024):
            rows = slice(start, start + 1024)
            columns.append(x @ values(b[rows], w_scale[rows]).T)
        return (torch.cat(columns, dim=1) * alpha).to(torch.bfloat16)

    return run


class Nvfp4GemmBase(GemmFp4Tests):
    reference = staticmethod(reference_nvfp4_gemm)
    interface = INTERFACE_NVFP4_GEMM
    constants = ("K",)

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: fused query, key and value projection, 8192 to 1280 features.
class TestNvfp4GemmN1280K8192(Nvfp4GemmBase):
    name = "nvfp4_gemm_n1280_k8192"
    axes = {"N": 1280, "bytes_k": 4096, "num_k_blocks": 512}
    K = 8192  # "k8192" in the name
    sha256 = "e0a9e4da28f07bbe46850dbb3d666aa8a43555be8273bfc95b979622d67fb465"

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: fused gate and up projection, 8192 to 7168 features.
class TestNvfp4GemmN7168K8192(Nvfp4GemmBase):
    name = "nvfp4_gemm_n7168_k8192"
    axes = {"N": 7168, "bytes_k": 4096, "num_k_blocks": 512}
    K = 8192  # "k8192" in the name
    sha256 = "2b2ba5bc3d1493ac5c2c16416ffa31d0ed0dfa2995241a7d81e4e54451112596"

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: attention output projection, 1024 to 8192 features.
class TestNvfp4GemmN8192K1024(Nvfp4GemmBase):
    name = "nvfp4_gemm_n8192_k1024"
    axes = {"N": 8192, "bytes_k": 512, "num_k_blocks": 64}
    K = 1024  # "k1024" in the name
    sha256 = "5ad0d6df3dea4bef14e18b10aa82d934b0028818a2f0e37d48ef442d3ad7341c"

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: down projection, 3584 to 8192 features.
class TestNvfp4GemmN8192K3584(Nvfp4GemmBase):
    name = "nvfp4_gemm_n8192_k3584"
    axes = {"N": 8192, "bytes_k": 1792, "num_k_blocks": 224}
    K = 3584  # "k3584" in the name
    sha256 = "53c33ac0150109f754fbeef2bea8cdecd907cfd26f21ac815b8a867a3659e642"


# Each 16 codes of a row share a float8_e4m3fn scale, and alpha multiplies the product.
# Scales lie as tensor cores take them, in tiles of 128 rows and 4 blocks: row r and
# block c of a tile at 16 * (r % 32) + 4 * (r // 32) + c. Rows of a that pad the last
# tile have scales, which mean nothing. In float32, rounded to bfloat16 at the end.
# Kernels are of compute capability 10 and later.
# quantization:nvfp4, gpu:sm100, layout:swizzled, tp:8, fi_api:flashinfer.gemm.mm_fp4
# Tolerances: those of reference_mxfp4_gemm.
def reference_nvfp4_gemm_swizzled():
    import torch

    BLOCK = 16
    # e2m1: a sign, two bits of exponent, one of mantissa
    VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


    def values(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        octets = codes.view(torch.uint8)
        # the first of two codes is in the lower half
        pairs = torch.stack((octets & 15, octets >> 4), dim=2).flatten(1).long()
        table = torch.tensor(VALUES, device=codes.device)
        table = torch.cat((table, -table))
        return table[pairs] * scale.repeat_interleave(BLOCK, dim=1)


    def unswizzled(scale: torch.Tensor) -> torch.Tensor:
        # 128 rows and 4 blocks lie together: row 32 * i + j, block k at 16 * j + 4 * i + k
        rows, blocks = scale.shape
        tiles = scale.float().view(rows // 128, blocks // 4, 32, 4, 4)
        return tiles.permute(0, 3, 2, 1, 4).reshape(rows, blocks)


    @torch.no_grad()
    def run(
        a: torch.Tensor,
        b: torch.Tensor,
        a_scale: torch.Tensor,
        b_scale: torch.Tensor,
        alpha: torch.Tensor,
    ) -> torch.Tensor:
        # rows that pad a tile belong to no token
        x_scale = unswizzled(a_scale)[: a.shape[0]]
        w_scale = unswizzled(b_scale)
        x = values(a, x_scale)
        columns = []
        # Rows of the weight a block at a time: float32 takes eight times the memory.
        for start in range(0, b.shape[0], 1024):
            rows = slice(start, start + 1024)
            columns.append(x @ values(b[rows], w_scale[rows]).T)
        return (torch.cat(columns, dim=1) * alpha).to(torch.bfloat16)

    return run


class Nvfp4GemmSwizzledBase(GemmFp4Tests):
    reference = staticmethod(reference_nvfp4_gemm_swizzled)
    interface = INTERFACE_NVFP4_GEMM_SWIZZLED
    constants = ("K",)

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: fused query, key and value projection, 8192 to 1280 features.
class TestNvfp4GemmSwizzledN1280K8192(Nvfp4GemmSwizzledBase):
    name = "nvfp4_gemm_swizzled_n1280_k8192"  # model:llama-3.3-70b
    axes = {"N": 1280, "bytes_k": 4096, "num_k_blocks": 512}
    K = 8192  # "k8192" in the name
    sha256 = "bc563a93b8e34fbe892db0d8f8075b4cea5f66aa08e0760dc0c93df90f7edc7a"

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: gate and up of the shared expert, 7168 to 512 features.
class TestNvfp4GemmSwizzledN512K7168(Nvfp4GemmSwizzledBase):
    name = "nvfp4_gemm_swizzled_n512_k7168"  # model:deepseek-r1
    axes = {"N": 512, "bytes_k": 3584, "num_k_blocks": 448}
    K = 7168  # "k7168" in the name
    sha256 = "8d1d478b2b6fed4d1a853fdbc09efec7fccf1f0e1f4b94ab08a0d9f2b243ccda"

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: down projection of the shared expert, 256 to 7168 features.
class TestNvfp4GemmSwizzledN7168K256(Nvfp4GemmSwizzledBase):
    name = "nvfp4_gemm_swizzled_n7168_k256"  # model:deepseek-r1
    axes = {"N": 7168, "bytes_k": 128, "num_k_blocks": 16}
    K = 256  # "k256" in the name
    sha256 = "4496795d5eca8aa3d12890d4f18189ed36bca3813475672e9e4d329fbe86dd77"

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: fused gate and up projection, 8192 to 7168 features.
class TestNvfp4GemmSwizzledN7168K8192(Nvfp4GemmSwizzledBase):
    name = "nvfp4_gemm_swizzled_n7168_k8192"  # model:llama-3.3-70b
    axes = {"N": 7168, "bytes_k": 4096, "num_k_blocks": 512}
    K = 8192  # "k8192" in the name
    sha256 = "605762580609165d9bea5651a2b67de9b983643c315fcb8c644e31a132fbfae1"

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: attention output projection, 1024 to 8192 features.
class TestNvfp4GemmSwizzledN8192K1024(Nvfp4GemmSwizzledBase):
    name = "nvfp4_gemm_swizzled_n8192_k1024"  # model:llama-3.3-70b
    axes = {"N": 8192, "bytes_k": 512, "num_k_blocks": 64}
    K = 1024  # "k1024" in the name
    sha256 = "df95467ca3313a45c9ec8ead28b0b8017233efadcd00bfef8a3051afc51f45c3"

# Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower half of a
# byte: down projection, 3584 to 8192 features.
class TestNvfp4GemmSwizzledN8192K3584(Nvfp4GemmSwizzledBase):
    name = "nvfp4_gemm_swizzled_n8192_k3584"  # model:llama-3.3-70b
    axes = {"N": 8192, "bytes_k": 1792, "num_k_blocks": 224}
    K = 3584  # "k3584" in the name
    sha256 = "fcfeb8d5c891a1ef1a2052650d22856b800f1f98082db2091aa3d0d9f59faf01"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
