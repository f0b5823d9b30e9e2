"""Reference tests of op_type gemm_w8a8.

Rendered: don't edit. `gen-tests --op-type gemm_w8a8` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- PyTorch's CUDA kernel, live, on a CUDA device
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
from generator.ops.op_types.gemm_w8a8.relations import w8a8_relations
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
# relations: generator.ops.op_types.gemm_w8a8.relations

_ONCE = "float32 sums of elements of about 1, rounded once: half an ulp is 2^-8 at most"
_PROMOTED = (
    "Hopper's tensor cores keep 14 bits of a sum of 32 products of float8, and kernels "
    "without fast accumulation add four of these in float32: 4 * 2^-13 of a sum, 5e-4 of "
    "the RMS; both sides round once, to neighbours at most"
)
_FAST = (
    "Triton leaves sums of float8 in the tensor core, which keeps 14 bits: an addition "
    "for each 32 of K, 2^-13 each, 1.6e-2 for a K of 4096, and half of it on average; "
    "both sides round once"
)
_TWO = (
    "a sum of two products of up to 8 keeps 14 bits: 8·2^-14; both sides round once, to "
    "neighbours at most"
)
_INTEGERS = (
    "sums of int8 are exact; two or three products in float32, and both sides round "
    "once, to neighbours at most: 2^-7"
)


_FP8, _INT8 = "triton-float8", "triton-int8"
# a case in which no kernel loses what its sums have: what is rounded before the scale shows
_FEW = "two-products"


def _by_terms(definition: Definition, case: Case) -> float:
    """Return how many times as many additions there are as in a K of 4096."""
    return max(definition.axes["K"] / 4096, 1.0)


TOLERANCES = (
    Override("out", Tolerance(4e-3, 2e-4, 5e-6), _ONCE, source="oracle"),
    *(
        Override("out", Tolerance(8e-3, 7e-4, 5e-6), _TWO, source=source, case=_FEW)
        for source in ("pytorch", f"sglang/{_FP8}")
    ),
    Override("out", Tolerance(8e-3, 4e-3, 5e-6), _PROMOTED, source="pytorch"),
    Override("out", Tolerance(8e-3, 1e-6, 1e-5), _INTEGERS, source=f"sglang/{_INT8}"),
    Override(
        "out",
        Tolerance(1.6e-2, 2e-2, 1e-4),
        _FAST,
        source=f"sglang/{_FP8}",
        growth=_by_terms,
    ),
)
_CODE_STD = {"float8_e4m3fn": 100.0, "int8": 35.0}
_ENDS = {"float8_e4m3fn": (-448.0, 448.0), "int8": (-128.0, 127.0)}
_CODES = {"x": 1, "x_scale": -1, "weight": 1, "weight_scale": -1}
_FEWEST_ROWS = 32
_ZEROS = (-40, 41)


def _dtype(definition: Definition) -> str:
    return definition.interface.input_specs["x"].dtype


def cases(definition: Definition) -> list[Case]:
    """Return few and many rows, rows of zeros, and the largest codes.

    Of two products with codes of 1 or -1 a sum is so small that one more shows.
    """
    rows = Case("odd-rows", "small", {"M": 7})
    return [
        Case("one-row", "small", {"M": 1}),
        rows,
        Case("zero-rows", "small", {"M": 3}, {"zero_rows": 1}),
        Case("largest-codes", "small", {"M": 2}, {"largest": True}),
        Case(_FEW, "small", {"M": 2}, {"products": 2}),
        Case("rows", "medium", {"M": 65}),
        past_limits("M", 8_219),
        *far_apart(rows, "x_scale", against=("weight_scale",), exponent=18.0),
        *(far_codes(rows, **_CODES) if _dtype(definition) != "int8" else ()),
        Case("many-rows", "large", {"M": 2048}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return codes and scales of which the elements of the product are about 1.

    Codes are up to 245 in float8_e4m3fn, 85 in int8, with `largest` the largest or the
    least, with `products` ones and as many of K. Scales of rows are 1 to 4 times a unit, of 24 bits, zeros
    of rows -40 to 40, and codes lie around them.
    """
    m, n, k = case.axes["M"], definition.axes["N"], definition.axes["K"]
    kind = _dtype(definition)
    size, inputs = _CODE_STD[kind], definition.interface.inputs
    weight_size = size
    x = stream.child("x").values((m, k), size)
    weight = stream.child("weight").matrix(n, k, size, torch.float32)
    products = case.params.get("products", k)
    if case.params.get("largest"):
        least, size = _ENDS[kind]
        x, weight = (torch.where(codes < 0, least, size) for codes in (x, weight))
        weight_size = size
    if products < k:
        x, size = x.sign(), 1.0
        x[:, products:] = 0.0
    x[: case.params.get("zero_rows", 0)] = 0.0
    zeros = torch.zeros(m, dtype=torch.int8)
    if "x_zero" in inputs:
        drawn = stream.child("x_zero").integers(*_ZEROS, m)
        zeros = torch.tensor(drawn, dtype=torch.int8)
        if case.params.get("largest"):
            zeros = torch.tensor([-128, 127], dtype=torch.int8).repeat(m)[:m]
    around = 0 if case.params.get("largest") else zeros[:, None]
    codes = _codes(x + around, kind), _codes(weight, kind)
    if "x_scale" not in inputs:
        return dict(zip(inputs, codes, strict=True))
    units = 1.0 / size, 1.0 / (weight_size * math.sqrt(products))
    tensors = {
        "x": codes[0],
        "weight": codes[1],
        "x_scale": _scales(stream.child("x_scale"), m, units[0]),
        "weight_scale": _scales(stream.child("weight_scale"), n, units[1]),
    }
    if definition.interface.input_specs["x_scale"].shape == ():
        for name in ("x_scale", "weight_scale"):
            tensors[name] = tensors[name][0]
    return tensors | ({"x_zero": zeros} if "x_zero" in inputs else {})


def _codes(values: torch.Tensor, kind: str) -> torch.Tensor:
    if kind == "int8":
        return values.round().clamp(-128.0, 127.0).to(torch.int8)
    return values.to(torch.float8_e4m3fn)


def _scales(stream: Stream, count: int, size: float) -> torch.Tensor:
    """Return float32 [count] of RMS `size`, the largest four times the least."""
    drawn = stream.integer_tensor(0, 2**24, count).double() / 2**24
    return ((1.0 + 3.0 * drawn) * (size / math.sqrt(7.0))).float()


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the products, float64 or int32 [M, N]: values first, then their product."""
    x, weight = inputs["x"].double(), inputs["weight"]
    if "x_zero" in inputs:
        x -= inputs["x_zero"].double()[:, None]
    if "x_scale" not in inputs:
        # float64 has sums up to 2^53 exactly
        return _product(x, weight).int()
    x *= inputs["x_scale"].double().reshape(-1, 1)
    factors: torch.Tensor = inputs["weight_scale"].double()
    return _product(x, weight) * factors


def _product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.cat([x @ rows.double().T for rows in torch.split(weight, 2048)], dim=1)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the product of the codes' dtype; of int8 PyTorch has that of no scales."""
    if _dtype(definition) != "int8":
        return (Backend("scaled_mm", min_sm=89),)
    if "x_scale" in definition.interface.inputs:
        return ()
    return (Backend("int_mm", min_sm=80),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call PyTorch's product; return bfloat16 or int32 [M, N].

    That of int8 takes more than 16 rows on a GPU: rows of zeros follow those there are.
    """
    x, weight = inputs["x"], inputs["weight"]
    if backend == "int_mm":
        more = x.new_zeros((max(_FEWEST_ROWS - len(x), 0), x.shape[1]))
        return torch._int_mm(torch.cat((x, more)), weight.T)[: len(x)]
    scales = inputs["x_scale"], inputs["weight_scale"]
    if scales[0].dim():
        scales = scales[0][:, None], scales[1][None]
    return torch._scaled_mm(x, weight.T, *scales, out_dtype=torch.bfloat16)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the Triton kernel, which has scales and no zeros."""
    inputs = definition.interface.inputs
    if "x_scale" not in inputs or "x_zero" in inputs:
        return ()
    if _dtype(definition) == "int8":
        return (Backend(_INT8, min_sm=80, needs=("triton",)),)
    return (Backend(_FP8, min_sm=89, needs=("triton",)),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call SGLang's Triton kernel with columns of scales; return bfloat16 [M, N]."""
    from sglang.kernels.ops.gemm.fp8_kernel import triton_scaled_mm

    columns = [inputs[name].reshape(-1, 1) for name in ("x_scale", "weight_scale")]
    return triton_scaled_mm(inputs["x"], inputs["weight"].T, *columns, torch.bfloat16)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=w8a8_relations,
    tolerances=TOLERANCES,
    kernels={
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_INT8_MM = Interface(
    inputs={"x": "int8[M, K]", "weight": "int8[N, K]"},
    outputs={"total": "int32[M, N]"},
)
INTERFACE_W8A8_FP8 = Interface(
    inputs={
        "x": "float8_e4m3fn[M, K]",
        "weight": "float8_e4m3fn[N, K]",
        "x_scale": "float32[M]",
        "weight_scale": "float32[N]",
    },
    outputs={"out": "bfloat16[M, N]"},
)
INTERFACE_W8A8_FP8_TENSOR = INTERFACE_W8A8_FP8.but(
    inputs={"x_scale": "float32[]", "weight_scale": "float32[]"},
)
INTERFACE_W8A8_INT8_AZP = Interface(
    inputs={
        "x": "int8[M, K]",
        "weight": "int8[N, K]",
        "x_scale": "float32[M]",
        "weight_scale": "float32[N]",
        "x_zero": "int8[M]",
    },
    outputs={"out": "bfloat16[M, N]"},
)
INTERFACE_W8A8_INT8 = INTERFACE_W8A8_INT8_AZP.but(
    without=("x_zero",),
)

# ---- the tests


class GemmW8a8Tests(
    GroundTruthsAgree, matches("pytorch", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of gemm_w8a8 share."""

    op_type = "gemm_w8a8"
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
# (2) a sum of two products of up to 8 keeps 14 bits.
# (3) Hopper's tensor cores keep 14 bits of a sum of 32 products of float8, and kernels
# without fast accumulation add four of these in float32.
# (4) sums of int8 are exact.
# (5) Triton leaves sums of float8 in the tensor core, which keeps 14 bits.


# model:llama-3.1-8b, quantization:int8
# Tolerances:
#   output  source                   rtol   atol  NMSE  reason
#   total   oracle, pytorch, sglang  exact
def reference_int8_mm():
    import torch

    TERMS = 1024


    @torch.no_grad()
    def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        size = (x.shape[0], weight.shape[0])
        total = torch.zeros(size, dtype=torch.int32, device=x.device)
        # 1024 products of int8 add up to 2^24 at most: float32 has such sums exactly.
        parts = zip(torch.split(x, TERMS, 1), torch.split(weight, TERMS, 1), strict=True)
        for codes, rows in parts:
            total += (codes.float() @ rows.float().T).to(torch.int32)
        return total

    return run


class Int8MmBase(GemmW8a8Tests):
    reference = staticmethod(reference_int8_mm)
    interface = INTERFACE_INT8_MM
    axes = {"K": 4096}

# Matrix product out = x @ weight.T of int8 codes: attention output projection, 4096 to
# 4096 features, in int32 and exact, before any scale.
class TestInt8MmN4096K4096(Int8MmBase):
    name = "int8_mm_n4096_k4096"
    axes = {"N": 4096}
    sha256 = "56a3a1e96d280bea0c0633116ac5471fb59fae44cd2b12cfd201f2d5aeed2cdd"

# Matrix product out = x @ weight.T of int8 codes: fused query, key and value
# projection, 4096 to 6144 features, in int32 and exact, before any scale.
class TestInt8MmN6144K4096(Int8MmBase):
    name = "int8_mm_n6144_k4096"
    axes = {"N": 6144}
    sha256 = "87086c626be1d6a4f6082db232c6b0552afd1aac75b8653a79ba0bc5468210a6"


# A row of the activations, a token, has a scale, and a row of the weight, an output
# feature. The scales multiply sums, in float32; rounded to bfloat16 at the end.
# quantization:float8_e4m3fn
# Tolerances:
#   output  source                                         rtol   atol    NMSE    reason
#   out     oracle                                         0.004  0.0002  5e-06   (1)
#   out     pytorch, sglang/triton-float8 in two-products  0.008  0.0007  5e-06   (2)
#   out     pytorch                                        0.008  0.004   5e-06   (3)
#   out     sglang/triton-int8                             0.008  1e-06   1e-05   (4)
#   out     sglang/triton-float8                           0.016  0.02*   0.0001  (5)
#   out     sglang                                         0.01   0.008   2e-05   default
def reference_w8a8_fp8():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        weight: torch.Tensor,
        x_scale: torch.Tensor,
        weight_scale: torch.Tensor,
    ) -> torch.Tensor:
        codes = x.float()
        # Rows of the weight a block at a time: a float32 copy of all may take gigabytes.
        products = [codes @ rows.float().T for rows in torch.split(weight, 4096)]
        scales = x_scale[:, None] * weight_scale
        return (torch.cat(products, dim=1) * scales).to(torch.bfloat16)

    return run


class W8a8Fp8Base(GemmW8a8Tests):
    reference = staticmethod(reference_w8a8_fp8)
    interface = INTERFACE_W8A8_FP8

# The next 4: Matrix product out = x @ weight.T of float8_e4m3fn codes: fused gate and
# up projection, K to N features.
class TestW8a8Fp8N12800K5120(W8a8Fp8Base):
    name = "w8a8_fp8_n12800_k5120"  # model:qwen3-32b, tp:4
    axes = {"N": 12800, "K": 5120}
    sha256 = "e15cf59ce403961d4a6e79230c9b49273a39cb625e41ff313b5048b7c7133508"

class TestW8a8Fp8N28672K4096(W8a8Fp8Base):
    name = "w8a8_fp8_n28672_k4096"  # model:llama-3.1-8b
    axes = {"N": 28672, "K": 4096}
    sha256 = "17cc4fa4cfd5d175eca489f8ab16121cc1f40290cfda5fd055bab16d6dd10e06"

class TestW8a8Fp8N3072K5120(W8a8Fp8Base):
    name = "w8a8_fp8_n3072_k5120"  # model:glm-4.6, tp:8
    axes = {"N": 3072, "K": 5120}
    sha256 = "75a42ba667a6870ed6fc1da492a7f25e8eceab3021dbc68d786be2b02aa09dba"

class TestW8a8Fp8N7168K8192(W8a8Fp8Base):
    name = "w8a8_fp8_n7168_k8192"  # model:llama-3.3-70b, tp:8
    axes = {"N": 7168, "K": 8192}
    sha256 = "906b25ace831cd7081967070d49dfd5bf7ea4fdde855228ccbfe204417d9cf4a"

# The next 4: Matrix product out = x @ weight.T of float8_e4m3fn codes: fused query, key
# and value projection, K to N features.
class TestW8a8Fp8N1280K8192(W8a8Fp8Base):
    name = "w8a8_fp8_n1280_k8192"  # model:llama-3.3-70b, tp:8
    axes = {"N": 1280, "K": 8192}
    sha256 = "d5a8f42390c118083e861df1b4040df906df336a00badc18b9390d35363213ab"

class TestW8a8Fp8N1792K5120(W8a8Fp8Base):
    name = "w8a8_fp8_n1792_k5120"  # model:glm-4.6, tp:8
    axes = {"N": 1792, "K": 5120}
    sha256 = "b3cfe4eb935db5da4e642a1c5a745f8a7b6fc4a4055f7d565105965769a1549e"

class TestW8a8Fp8N2560K5120(W8a8Fp8Base):
    name = "w8a8_fp8_n2560_k5120"  # model:qwen3-32b, tp:4
    axes = {"N": 2560, "K": 5120}
    sha256 = "6717e3d11b95fd970996126d22f1664b0f47cb5cb5e716c371809c90639ab2b3"

class TestW8a8Fp8N6144K4096(W8a8Fp8Base):
    name = "w8a8_fp8_n6144_k4096"  # model:llama-3.1-8b
    axes = {"N": 6144, "K": 4096}
    sha256 = "853a4ebdd7db94c4d55ce8b182c79441e4aabf1dc20b5b3de16ce1dd4b19dc88"

# The next 3: Matrix product out = x @ weight.T of float8_e4m3fn codes: down projection,
# K to N features.
class TestW8a8Fp8N4096K14336(W8a8Fp8Base):
    name = "w8a8_fp8_n4096_k14336"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 14336}
    sha256 = "e2ce63e4284b87b4f372b651993fe0e777a11d4504dacdb5723a5e6d6b81c407"

class TestW8a8Fp8N5120K6400(W8a8Fp8Base):
    name = "w8a8_fp8_n5120_k6400"  # model:qwen3-32b, tp:4
    axes = {"N": 5120, "K": 6400}
    sha256 = "ade4cf704c5880fe564387be56cde13a2675964a7ce01033b7e34db0123af738"

class TestW8a8Fp8N8192K3584(W8a8Fp8Base):
    name = "w8a8_fp8_n8192_k3584"  # model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 3584}
    sha256 = "68bcf1f9afc58a72d2e6951a8e60ee04efe42a442c524dee00ba4afd8a9a3cf1"

# The next 4: Matrix product out = x @ weight.T of float8_e4m3fn codes: attention output
# projection, K to N features.
class TestW8a8Fp8N4096K4096(W8a8Fp8Base):
    name = "w8a8_fp8_n4096_k4096"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 4096}
    sha256 = "96d184ae916d30e19a655296006be3b79ba41816311b5d2e0c0917fb84d1a267"

class TestW8a8Fp8N5120K1536(W8a8Fp8Base):
    name = "w8a8_fp8_n5120_k1536"  # model:glm-4.6, tp:8
    axes = {"N": 5120, "K": 1536}
    sha256 = "3aa7c47808332cd52ae43a7e49d195993451c8d843bb63b1dd4133f0e9d820e6"

class TestW8a8Fp8N5120K2048(W8a8Fp8Base):
    name = "w8a8_fp8_n5120_k2048"  # model:qwen3-32b, tp:4
    axes = {"N": 5120, "K": 2048}
    sha256 = "9e169d64d5d75f61fb10378d2aca3d376f1eb5c867671d062043b96975fde08a"

class TestW8a8Fp8N8192K1024(W8a8Fp8Base):
    name = "w8a8_fp8_n8192_k1024"  # model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 1024}
    sha256 = "2ce3871f2cf0f65a41bdc2b2a912fa92c5ca2f7f447e5545e6c73a17857f8710"


# The activations have one scale and the weight one, both tensors without axes. The
# scales multiply sums, in float32; rounded to bfloat16 at the end.
# quantization:float8_e4m3fn
# Tolerances: those of reference_w8a8_fp8.
def reference_w8a8_fp8_tensor():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        weight: torch.Tensor,
        x_scale: torch.Tensor,
        weight_scale: torch.Tensor,
    ) -> torch.Tensor:
        codes = x.float()
        # Rows of the weight a block at a time: a float32 copy of all may take gigabytes.
        products = [codes @ rows.float().T for rows in torch.split(weight, 4096)]
        scales = x_scale * weight_scale
        return (torch.cat(products, dim=1) * scales).to(torch.bfloat16)

    return run


class W8a8Fp8TensorBase(GemmW8a8Tests):
    reference = staticmethod(reference_w8a8_fp8_tensor)
    interface = INTERFACE_W8A8_FP8_TENSOR

# The next 2: Matrix product out = x @ weight.T of float8_e4m3fn codes: fused query, key
# and value projection, K to N features.
class TestW8a8Fp8TensorN1280K8192(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n1280_k8192"  # model:llama-3.3-70b, tp:8
    axes = {"N": 1280, "K": 8192}
    sha256 = "a5005c42fce2f012e48dce1cd1af3ccdd417f8d8aa9f279bed011c210251bcbf"

class TestW8a8Fp8TensorN6144K4096(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n6144_k4096"  # model:llama-3.1-8b
    axes = {"N": 6144, "K": 4096}
    sha256 = "ac5ce8ce275f79a84244dc481288d29fd30ed7e4351f6a123c54d61a154d9c7f"

# The next 2: Matrix product out = x @ weight.T of float8_e4m3fn codes: fused gate and
# up projection, K to N features.
class TestW8a8Fp8TensorN28672K4096(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n28672_k4096"  # model:llama-3.1-8b
    axes = {"N": 28672, "K": 4096}
    sha256 = "c9c5ef2d2e4b69abf8715381deecca53ac2f0a5984b2b6e53d07e2839a5e26a4"

class TestW8a8Fp8TensorN7168K8192(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n7168_k8192"  # model:llama-3.3-70b, tp:8
    axes = {"N": 7168, "K": 8192}
    sha256 = "2662c8f921db49b1122172c00894e5c8edbc293d7d5f2b6f0564c36a6d2bbce7"

# The next 2: Matrix product out = x @ weight.T of float8_e4m3fn codes: down projection,
# K to N features.
class TestW8a8Fp8TensorN4096K14336(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n4096_k14336"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 14336}
    sha256 = "b715c909424f6ea2e111c93d5ca16bf410cb191c645bd1a8e8381acae42009ad"

class TestW8a8Fp8TensorN8192K3584(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n8192_k3584"  # model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 3584}
    sha256 = "e83d7af477025aca59684517941080c2f7228f88bce66a640ab07aa07f4c1046"

# The next 2: Matrix product out = x @ weight.T of float8_e4m3fn codes: attention output
# projection, K to N features.
class TestW8a8Fp8TensorN4096K4096(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n4096_k4096"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 4096}
    sha256 = "6aefcfaa6d6aa56ccdfc12546193731a0b71993cf746191bae6516e47e3db919"

class TestW8a8Fp8TensorN8192K1024(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n8192_k1024"  # model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 1024}
    sha256 = "75499d2f34b33ce327458e310ef54f400c93c35e4d30d81c29edd5f4df5ee0c8"


# A row of the activations has a scale and a zero, the code that stands for 0; a row of
# the weight has a scale. The scales multiply exact sums, in float32; rounded to
# bfloat16 at the end.
# model:llama-3.1-8b, quantization:int8
# Tolerances: those of reference_w8a8_fp8.
def reference_w8a8_int8_azp():
    import torch

    TERMS = 1024


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        weight: torch.Tensor,
        x_scale: torch.Tensor,
        weight_scale: torch.Tensor,
        x_zero: torch.Tensor,
    ) -> torch.Tensor:
        size = (x.shape[0], weight.shape[0])
        total = torch.zeros(size, dtype=torch.int32, device=x.device)
        # 1024 products of int8 add up to 2^24 at most: float32 has such sums exactly.
        parts = zip(torch.split(x, TERMS, 1), torch.split(weight, TERMS, 1), strict=True)
        for codes, rows in parts:
            total += (codes.float() @ rows.float().T).to(torch.int32)
        # The code of zero in a row, times each row of the weight, is no part of the product.
        total -= x_zero.int()[:, None] * weight.sum(dim=1, dtype=torch.int32)
        scales = x_scale[:, None] * weight_scale
        return (total.float() * scales).to(torch.bfloat16)

    return run


class W8a8Int8AzpBase(GemmW8a8Tests):
    reference = staticmethod(reference_w8a8_int8_azp)
    interface = INTERFACE_W8A8_INT8_AZP

# Matrix product out = x @ weight.T of int8 codes: fused gate and up projection, 4096 to
# 28672 features.
class TestW8a8Int8AzpN28672K4096(W8a8Int8AzpBase):
    name = "w8a8_int8_azp_n28672_k4096"
    axes = {"N": 28672, "K": 4096}
    sha256 = "596646574fa0093ae90e3b7bc86d575a3fd5f56cb09ee584a79406d7eb56bd4c"

# Matrix product out = x @ weight.T of int8 codes: down projection, 14336 to 4096
# features.
class TestW8a8Int8AzpN4096K14336(W8a8Int8AzpBase):
    name = "w8a8_int8_azp_n4096_k14336"
    axes = {"N": 4096, "K": 14336}
    sha256 = "63103e49fe811e96c110e9451ab4495572e2fb7537b72eac151531b9eff3bd58"

# Matrix product out = x @ weight.T of int8 codes: attention output projection, 4096 to
# 4096 features.
class TestW8a8Int8AzpN4096K4096(W8a8Int8AzpBase):
    name = "w8a8_int8_azp_n4096_k4096"
    axes = {"N": 4096, "K": 4096}
    sha256 = "ae41efaf1c7c9e46c0a7f8b0453b83dcc27ed1edeb0a3ff46349b9ea60b150b1"

# Matrix product out = x @ weight.T of int8 codes: fused query, key and value
# projection, 4096 to 6144 features.
class TestW8a8Int8AzpN6144K4096(W8a8Int8AzpBase):
    name = "w8a8_int8_azp_n6144_k4096"
    axes = {"N": 6144, "K": 4096}
    sha256 = "8f9ee0159659893f6e8a8c7c0225808a67152f697e4eb9efcb474532514bbaa9"


# A row of the activations, a token, has a scale, and a row of the weight, an output
# feature. The scales multiply sums, in float32; rounded to bfloat16 at the end.
# quantization:int8
# Tolerances: those of reference_w8a8_fp8.
def reference_w8a8_int8():
    import torch

    TERMS = 1024


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        weight: torch.Tensor,
        x_scale: torch.Tensor,
        weight_scale: torch.Tensor,
    ) -> torch.Tensor:
        size = (x.shape[0], weight.shape[0])
        total = torch.zeros(size, dtype=torch.int32, device=x.device)
        # 1024 products of int8 add up to 2^24 at most: float32 has such sums exactly.
        parts = zip(torch.split(x, TERMS, 1), torch.split(weight, TERMS, 1), strict=True)
        for codes, rows in parts:
            total += (codes.float() @ rows.float().T).to(torch.int32)
        scales = x_scale[:, None] * weight_scale
        return (total.float() * scales).to(torch.bfloat16)

    return run


class W8a8Int8Base(GemmW8a8Tests):
    reference = staticmethod(reference_w8a8_int8)
    interface = INTERFACE_W8A8_INT8

# The next 2: Matrix product out = x @ weight.T of int8 codes: fused gate and up
# projection, K to N features.
class TestW8a8Int8N28672K4096(W8a8Int8Base):
    name = "w8a8_int8_n28672_k4096"  # model:llama-3.1-8b
    axes = {"N": 28672, "K": 4096}
    sha256 = "2ae7b82b2595253b29168e58026ce5f5324c5f2784f59b86f4ca37c489d0104e"

class TestW8a8Int8N37888K3584(W8a8Int8Base):
    name = "w8a8_int8_n37888_k3584"  # model:qwen2.5-7b
    axes = {"N": 37888, "K": 3584}
    sha256 = "aa83bdaaf1113a23fdbd5fb3b61ab17ac3ae059b18c22adcccd47393ded1ebe5"

# The next 2: Matrix product out = x @ weight.T of int8 codes: down projection, K to N
# features.
class TestW8a8Int8N3584K18944(W8a8Int8Base):
    name = "w8a8_int8_n3584_k18944"  # model:qwen2.5-7b
    axes = {"N": 3584, "K": 18944}
    sha256 = "bffe4385c094b71228616a85c518cefc327f463727702ca96088e20a984149f5"

class TestW8a8Int8N4096K14336(W8a8Int8Base):
    name = "w8a8_int8_n4096_k14336"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 14336}
    sha256 = "dfaca0328d1694d9b47c42efad5b3edc124f8e5632a57e1ee44b43031ff5507b"

# The next 2: Matrix product out = x @ weight.T of int8 codes: attention output
# projection, N to K features.
class TestW8a8Int8N3584K3584(W8a8Int8Base):
    name = "w8a8_int8_n3584_k3584"  # model:qwen2.5-7b
    axes = {"N": 3584, "K": 3584}
    sha256 = "f4bc065616def96a7ad35242ab048312ae87da85581825ce75421aad28347692"

class TestW8a8Int8N4096K4096(W8a8Int8Base):
    name = "w8a8_int8_n4096_k4096"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 4096}
    sha256 = "ea0e4d9725f22d358d61b8d152126b79568af7427212a016f549ef00ca0cfbb2"

# The next 2: Matrix product out = x @ weight.T of int8 codes: fused query, key and
# value projection, K to N features.
class TestW8a8Int8N4608K3584(W8a8Int8Base):
    name = "w8a8_int8_n4608_k3584"  # model:qwen2.5-7b
    axes = {"N": 4608, "K": 3584}
    sha256 = "e6fad3d60800a96e0141eaea48e3997a85c3cdfd1498a52c21c424127b4217d8"

class TestW8a8Int8N6144K4096(W8a8Int8Base):
    name = "w8a8_int8_n6144_k4096"  # model:llama-3.1-8b
    axes = {"N": 6144, "K": 4096}
    sha256 = "857a5a529213e6aff117bb3a4423f3ea6b02cdbfb96ff11f242e21e1186fe5aa"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
