"""Reference tests of op_type gemm_w8a8.

Rendered: don't edit. `gen-tests --op-type gemm_w8a8` renders this file anew.

Each class tests one definition. It compares what the definition's `run()` returns with
- PyTorch's CUDA kernel, live, on a CUDA device
- SGLang's layers, live, in a process of their own
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
Tolerances stand at each reference; the dtype's default is that of
kernel_judge/comparison/tolerance.py. A recorded output has the tolerance of its kernel.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import torch

from generator.ops.op_types.gemm_w8a8.relations import w8a8_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesPyTorch,
    MatchesRecorded,
    MatchesSGLang,
    Metamorphic,
    main,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.repeated import past_limits
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import Relation
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
_INTEGERS = (
    "sums of int8 are exact; two or three products in float32, and both sides round "
    "once, to neighbours at most: 2^-7"
)


_FP8, _INT8 = "triton-float8", "triton-int8"


def _by_terms(definition: Definition, case: Case) -> float:
    """Return how many times as many additions there are as in a K of 4096."""
    return max(definition.axes["K"] / 4096, 1.0)


TOLERANCES = (
    Override("out", Tolerance(4e-3, 2e-4, 5e-6), _ONCE, source="oracle"),
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
_FEWEST_ROWS = 32
_ZEROS = (-40, 41)


def _dtype(definition: Definition) -> str:
    return definition.interface.input_specs["x"].dtype


def cases(definition: Definition) -> list[Case]:
    """Return few and many rows, rows of zeros, and the largest codes.

    Of two products with codes of 1 or -1 a sum is so small that one more shows.
    """
    return [
        Case("one-row", "small", {"M": 1}),
        Case("odd-rows", "small", {"M": 7}),
        Case("zero-rows", "small", {"M": 3}, {"zero_rows": 1}),
        Case("largest-codes", "small", {"M": 2}, {"largest": True}),
        Case("two-products", "small", {"M": 2}, {"products": 2}),
        Case("rows", "medium", {"M": 65}),
        past_limits("M", 8_219),
        Case("many-rows", "large", {"M": 2048}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return codes and scales of which the elements of the product are about 1.

    Codes are up to 245 in float8_e4m3fn, 85 in int8, with `largest` the largest or the
    least in the activations, with `products` ones and as many of K. Scales of rows are 1 to 4 times a unit, of 24 bits, zeros
    of rows -40 to 40, and codes lie around them.
    """
    m, n, k = case.axes["M"], definition.axes["N"], definition.axes["K"]
    kind = _dtype(definition)
    size, inputs = _CODE_STD[kind], definition.interface.inputs
    x = stream.child("x").values((m, k), size)
    weight = stream.child("weight").matrix(n, k, size, torch.float32)
    products = case.params.get("products", k)
    if case.params.get("largest"):
        least, size = _ENDS[kind]
        x = torch.where(x < 0, least, size)
    if products < k:
        x, size = x.sign(), 1.0
        x[:, products:] = 0.0
    x[: case.params.get("zero_rows", 0)] = 0.0
    zeros = torch.zeros(m, dtype=torch.int8)
    if "x_zero" in inputs:
        drawn = stream.child("x_zero").integers(*_ZEROS, m)
        zeros = torch.tensor(drawn, dtype=torch.int8)
    around = 0 if case.params.get("largest") else zeros[:, None]
    codes = _codes(x + around, kind), _codes(weight, kind)
    if "x_scale" not in inputs:
        return dict(zip(inputs, codes, strict=True))
    units = 1.0 / size, 1.0 / (_CODE_STD[kind] * math.sqrt(products))
    found = {
        "x": codes[0],
        "weight": codes[1],
        "x_scale": _scales(stream.child("x_scale"), m, units[0]),
        "weight_scale": _scales(stream.child("weight_scale"), n, units[1]),
    }
    if definition.interface.input_specs["x_scale"].shape == ():
        for name in ("x_scale", "weight_scale"):
            found[name] = found[name][0]
    return found | ({"x_zero": zeros} if "x_zero" in inputs else {})


def _codes(values: torch.Tensor, kind: str) -> torch.Tensor:
    if kind == "int8":
        return values.round().clamp(-128.0, 127.0).to(torch.int8)
    return values.to(torch.float8_e4m3fn)


def _scales(stream: Stream, count: int, size: float) -> torch.Tensor:
    """Return float32 [count] of RMS `size`, the largest four times the least."""
    drawn = torch.tensor(stream.integers(0, 2**24, count)).double() / 2**24
    return ((1.0 + 3.0 * drawn) * (size / math.sqrt(7.0))).float()


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the products, float64 or int32 [M, N]: values first, then their product."""
    x, weight = inputs["x"].double(), inputs["weight"]
    if "x_zero" in inputs:
        x -= inputs["x_zero"].double()[:, None]
    if "x_scale" not in inputs:
        # float64 has sums up to 2^53 exactly
        return _product(x, weight).to(torch.int32)
    x *= inputs["x_scale"].double().reshape(-1, 1)
    return _product(x, weight) * inputs["weight_scale"].double()


def _product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.cat([x @ rows.double().T for rows in weight.split(2048)], dim=1)


def relations(definition: Definition) -> list[Relation]:
    """Return what holds between products of related matrices, shards among them."""
    return w8a8_relations(definition)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the product of the codes' dtype; of int8 PyTorch has that of no scales."""
    if _dtype(definition) != "int8":
        return (Backend("scaled_mm", min_sm=89),)
    if "x_scale" in definition.interface.inputs:
        return ()
    return (Backend("int_mm", min_sm=80),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
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
    relations=relations,
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
INTERFACE_W8A8_FP8_TENSOR = Interface(
    inputs={
        "x": "float8_e4m3fn[M, K]",
        "weight": "float8_e4m3fn[N, K]",
        "x_scale": "float32[]",
        "weight_scale": "float32[]",
    },
    outputs={"out": "bfloat16[M, N]"},
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
INTERFACE_W8A8_INT8 = Interface(
    inputs={
        "x": "int8[M, K]",
        "weight": "int8[N, K]",
        "x_scale": "float32[M]",
        "weight_scale": "float32[N]",
    },
    outputs={"out": "bfloat16[M, N]"},
)

# ---- the tests


class GemmW8a8Tests(
    GroundTruthsAgree, MatchesPyTorch, MatchesSGLang, MatchesRecorded, Metamorphic
):
    """What the tests of gemm_w8a8 share."""

    op_type = "gemm_w8a8"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference as its definitions have it, then a class for each definition.
# Tolerances: the first row that applies counts; an atol* grows with the values of a case.
# Reasons, each derived with its bound:
# (1) float32 sums of elements of about 1, rounded once.
# (2) Hopper's tensor cores keep 14 bits of a sum of 32 products of float8, and kernels
# without fast accumulation add four of these in float32.
# (3) sums of int8 are exact.
# (4) Triton leaves sums of float8 in the tensor core, which keeps 14 bits.


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
        parts = zip(x.split(TERMS, dim=1), weight.split(TERMS, dim=1), strict=True)
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
    sha256 = "c8f8fa516681ed03ee4ece2aae560fed81156350b38ec69995aa305bb82287b1"

# Matrix product out = x @ weight.T of int8 codes: fused query, key and value
# projection, 4096 to 6144 features, in int32 and exact, before any scale.
class TestInt8MmN6144K4096(Int8MmBase):
    name = "int8_mm_n6144_k4096"
    axes = {"N": 6144}
    sha256 = "9de91ddc91f5c5af960a35378fa480ee24540427db6e45d6323a739dfc260984"


# A row of the activations, a token, has a scale, and a row of the weight, an output
# feature. The scales multiply sums, in float32; rounded to bfloat16 at the end.
# quantization:float8_e4m3fn
# Tolerances:
#   output  source                rtol   atol    NMSE    reason
#   out     oracle                0.004  0.0002  5e-06   (1)
#   out     pytorch               0.008  0.004   5e-06   (2)
#   out     sglang/triton-int8    0.008  1e-06   1e-05   (3)
#   out     sglang/triton-float8  0.016  0.02*   0.0001  (4)
#   out     sglang                0.01   0.008   2e-05   default
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
        products = [codes @ rows.float().T for rows in weight.split(4096)]
        scales = x_scale[:, None] * weight_scale
        return (torch.cat(products, dim=1) * scales).to(torch.bfloat16)

    return run


class W8a8Fp8Base(GemmW8a8Tests):
    reference = staticmethod(reference_w8a8_fp8)
    interface = INTERFACE_W8A8_FP8

# Matrix product out = x @ weight.T of float8_e4m3fn codes: fused gate and up
# projection, 5120 to 12800 features.
class TestW8a8Fp8N12800K5120(W8a8Fp8Base):
    name = "w8a8_fp8_n12800_k5120"  # model:qwen3-32b, tp:4
    axes = {"N": 12800, "K": 5120}
    sha256 = "836e2cde78bc793b6fc3ff512ca3d1d22a416ebd3a37a77d37b03d27ce6fa7b0"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: fused query, key and value
# projection, 8192 to 1280 features.
class TestW8a8Fp8N1280K8192(W8a8Fp8Base):
    name = "w8a8_fp8_n1280_k8192"  # model:llama-3.3-70b, tp:8
    axes = {"N": 1280, "K": 8192}
    sha256 = "aa0784753b96a1b60004407a8c7847cf8be853ecb30eb767f8413779c1054e71"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: fused query, key and value
# projection, 5120 to 1792 features.
class TestW8a8Fp8N1792K5120(W8a8Fp8Base):
    name = "w8a8_fp8_n1792_k5120"  # model:glm-4.6, tp:8
    axes = {"N": 1792, "K": 5120}
    sha256 = "51176d050218ad7c318c487fe59ca5f8a75872c62274f4feb880b2af4dc553ac"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: fused query, key and value
# projection, 5120 to 2560 features.
class TestW8a8Fp8N2560K5120(W8a8Fp8Base):
    name = "w8a8_fp8_n2560_k5120"  # model:qwen3-32b, tp:4
    axes = {"N": 2560, "K": 5120}
    sha256 = "32dd68628761a1180cfa3584bd25c542a8669387d5a92fdd316671f1e306966c"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: fused gate and up
# projection, 4096 to 28672 features.
class TestW8a8Fp8N28672K4096(W8a8Fp8Base):
    name = "w8a8_fp8_n28672_k4096"  # model:llama-3.1-8b
    axes = {"N": 28672, "K": 4096}
    sha256 = "2f650e93405486acaacbb681a17d45f6f1876e55593111e953e4d8dbe2d0848b"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: fused gate and up
# projection, 5120 to 3072 features.
class TestW8a8Fp8N3072K5120(W8a8Fp8Base):
    name = "w8a8_fp8_n3072_k5120"  # model:glm-4.6, tp:8
    axes = {"N": 3072, "K": 5120}
    sha256 = "931a8cb1a4c7d8cab08f1638fd20ed01e69c7ac3049797fd3b1ed5fbb8dd4e28"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: down projection, 14336 to
# 4096 features.
class TestW8a8Fp8N4096K14336(W8a8Fp8Base):
    name = "w8a8_fp8_n4096_k14336"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 14336}
    sha256 = "b3bbe4379d8935b7c2b6d5f134749cd2f49d5828626db7ccf50c31ee95b5d943"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: attention output projection,
# 4096 to 4096 features.
class TestW8a8Fp8N4096K4096(W8a8Fp8Base):
    name = "w8a8_fp8_n4096_k4096"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 4096}
    sha256 = "b6847d448ebf6644b4f23530c21b6a4e42de74e971bb5fae2491d1a3624f51f3"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: attention output projection,
# 1536 to 5120 features.
class TestW8a8Fp8N5120K1536(W8a8Fp8Base):
    name = "w8a8_fp8_n5120_k1536"  # model:glm-4.6, tp:8
    axes = {"N": 5120, "K": 1536}
    sha256 = "968b5feb6d8866bdc13ee3f2c8181ed36f75716071221171098d591358d163bf"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: attention output projection,
# 2048 to 5120 features.
class TestW8a8Fp8N5120K2048(W8a8Fp8Base):
    name = "w8a8_fp8_n5120_k2048"  # model:qwen3-32b, tp:4
    axes = {"N": 5120, "K": 2048}
    sha256 = "0575488e8558765f67147896cc33df5602f9925e85c6fe512d540bb6bb51e0df"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: down projection, 6400 to
# 5120 features.
class TestW8a8Fp8N5120K6400(W8a8Fp8Base):
    name = "w8a8_fp8_n5120_k6400"  # model:qwen3-32b, tp:4
    axes = {"N": 5120, "K": 6400}
    sha256 = "1f118b28abf96e571c6fa9b3a0a2467a2e1347fe8d7c3aa3d955939e69ea06c7"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: fused query, key and value
# projection, 4096 to 6144 features.
class TestW8a8Fp8N6144K4096(W8a8Fp8Base):
    name = "w8a8_fp8_n6144_k4096"  # model:llama-3.1-8b
    axes = {"N": 6144, "K": 4096}
    sha256 = "8ff93c48d9f3f34d4aeb4ffb5820fc544d2ce0c4a53884f8e81a6706b664dc31"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: fused gate and up
# projection, 8192 to 7168 features.
class TestW8a8Fp8N7168K8192(W8a8Fp8Base):
    name = "w8a8_fp8_n7168_k8192"  # model:llama-3.3-70b, tp:8
    axes = {"N": 7168, "K": 8192}
    sha256 = "f2e5f2ac1150c5663ce8a65feb22f04d7cede8e5d17a99460e9e2023315013f4"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: attention output projection,
# 1024 to 8192 features.
class TestW8a8Fp8N8192K1024(W8a8Fp8Base):
    name = "w8a8_fp8_n8192_k1024"  # model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 1024}
    sha256 = "0172073a425ec2ac34dd9202ca10260b21568c18f610bc4de40bf10222d5f508"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: down projection, 3584 to
# 8192 features.
class TestW8a8Fp8N8192K3584(W8a8Fp8Base):
    name = "w8a8_fp8_n8192_k3584"  # model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 3584}
    sha256 = "6d004785adb564c62812f6064ee7c5bf8c40a927a08a282b40a0668b58c01e7b"


# The activations have one scale and the weight one, both tensors without axes. The
# scales multiply sums, in float32; rounded to bfloat16 at the end.
# quantization:float8_e4m3fn
# Tolerances: as of reference_w8a8_fp8.
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
        products = [codes @ rows.float().T for rows in weight.split(4096)]
        scales = x_scale * weight_scale
        return (torch.cat(products, dim=1) * scales).to(torch.bfloat16)

    return run


class W8a8Fp8TensorBase(GemmW8a8Tests):
    reference = staticmethod(reference_w8a8_fp8_tensor)
    interface = INTERFACE_W8A8_FP8_TENSOR

# Matrix product out = x @ weight.T of float8_e4m3fn codes: fused query, key and value
# projection, 8192 to 1280 features.
class TestW8a8Fp8TensorN1280K8192(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n1280_k8192"  # model:llama-3.3-70b, tp:8
    axes = {"N": 1280, "K": 8192}
    sha256 = "a29386b9f0bd6a8630332aca97a03ee4538e001efbcbd08a562b04e4aa82c469"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: fused gate and up
# projection, 4096 to 28672 features.
class TestW8a8Fp8TensorN28672K4096(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n28672_k4096"  # model:llama-3.1-8b
    axes = {"N": 28672, "K": 4096}
    sha256 = "00a900bfaad203c2bf0df9d150c6807390fdc0d8b56cbe76b13120d64588c227"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: down projection, 14336 to
# 4096 features.
class TestW8a8Fp8TensorN4096K14336(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n4096_k14336"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 14336}
    sha256 = "8d39d45fb5b08d7a3e0c3f78e8ea8e4aca5f8979bc51819d8188df2a5d5645a2"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: attention output projection,
# 4096 to 4096 features.
class TestW8a8Fp8TensorN4096K4096(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n4096_k4096"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 4096}
    sha256 = "13da1874b81ae6825ccaf5b0d2c87e9149cedde877b873e1a53a1e1061e25b66"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: fused query, key and value
# projection, 4096 to 6144 features.
class TestW8a8Fp8TensorN6144K4096(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n6144_k4096"  # model:llama-3.1-8b
    axes = {"N": 6144, "K": 4096}
    sha256 = "59292661d03ce3ee9b14b7e1a85e7f4bf03cb4eae114e4d846cb5a32a817f725"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: fused gate and up
# projection, 8192 to 7168 features.
class TestW8a8Fp8TensorN7168K8192(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n7168_k8192"  # model:llama-3.3-70b, tp:8
    axes = {"N": 7168, "K": 8192}
    sha256 = "6cf74e5a861c2b368f4b76056eef52d4d1b5851535011aa58dd693df2c85fc2c"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: attention output projection,
# 1024 to 8192 features.
class TestW8a8Fp8TensorN8192K1024(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n8192_k1024"  # model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 1024}
    sha256 = "13e896b0b4d31355e71174edae4b4d423b8253ca260de4512ec250624dc4cce0"

# Matrix product out = x @ weight.T of float8_e4m3fn codes: down projection, 3584 to
# 8192 features.
class TestW8a8Fp8TensorN8192K3584(W8a8Fp8TensorBase):
    name = "w8a8_fp8_tensor_n8192_k3584"  # model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 3584}
    sha256 = "a6a6962c88c0c687f9d1233c8cdcd44a0629a892d731d1bebe62b3e853cc692e"


# A row of the activations has a scale and a zero, the code that stands for 0; a row of
# the weight has a scale. The scales multiply exact sums, in float32; rounded to
# bfloat16 at the end.
# model:llama-3.1-8b, quantization:int8
# Tolerances: as of reference_w8a8_fp8.
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
        parts = zip(x.split(TERMS, dim=1), weight.split(TERMS, dim=1), strict=True)
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
    sha256 = "2aad9c1b458047b2625d6875009e61d67b51fadc354bfc425b1aea27208f06a1"

# Matrix product out = x @ weight.T of int8 codes: down projection, 14336 to 4096
# features.
class TestW8a8Int8AzpN4096K14336(W8a8Int8AzpBase):
    name = "w8a8_int8_azp_n4096_k14336"
    axes = {"N": 4096, "K": 14336}
    sha256 = "7da12bac6c174280e8fbd0c9c5e464c96df02abbd6880235519c6d24182444e9"

# Matrix product out = x @ weight.T of int8 codes: attention output projection, 4096 to
# 4096 features.
class TestW8a8Int8AzpN4096K4096(W8a8Int8AzpBase):
    name = "w8a8_int8_azp_n4096_k4096"
    axes = {"N": 4096, "K": 4096}
    sha256 = "e9478840398af09c88b0b031db63e26285b1b5712ae4418c8a8c2ed1b00e96d6"

# Matrix product out = x @ weight.T of int8 codes: fused query, key and value
# projection, 4096 to 6144 features.
class TestW8a8Int8AzpN6144K4096(W8a8Int8AzpBase):
    name = "w8a8_int8_azp_n6144_k4096"
    axes = {"N": 6144, "K": 4096}
    sha256 = "33564aafef5c9125e50e17f93a4b7a3dcb2dbbe8fdbf25c3010435c38aed48b8"


# A row of the activations, a token, has a scale, and a row of the weight, an output
# feature. The scales multiply sums, in float32; rounded to bfloat16 at the end.
# quantization:int8
# Tolerances: as of reference_w8a8_fp8.
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
        parts = zip(x.split(TERMS, dim=1), weight.split(TERMS, dim=1), strict=True)
        for codes, rows in parts:
            total += (codes.float() @ rows.float().T).to(torch.int32)
        scales = x_scale[:, None] * weight_scale
        return (total.float() * scales).to(torch.bfloat16)

    return run


class W8a8Int8Base(GemmW8a8Tests):
    reference = staticmethod(reference_w8a8_int8)
    interface = INTERFACE_W8A8_INT8

# Matrix product out = x @ weight.T of int8 codes: fused gate and up projection, 4096 to
# 28672 features.
class TestW8a8Int8N28672K4096(W8a8Int8Base):
    name = "w8a8_int8_n28672_k4096"  # model:llama-3.1-8b
    axes = {"N": 28672, "K": 4096}
    sha256 = "11f8a511008b7353904dcdc131a240a2f607974c435a344501fe1fff679ecedb"

# Matrix product out = x @ weight.T of int8 codes: down projection, 18944 to 3584
# features.
class TestW8a8Int8N3584K18944(W8a8Int8Base):
    name = "w8a8_int8_n3584_k18944"  # model:qwen2.5-7b
    axes = {"N": 3584, "K": 18944}
    sha256 = "0b01c6a1a10884f9bf21da5a593316ba3e85a9ba43d17a450111946ca8435609"

# Matrix product out = x @ weight.T of int8 codes: attention output projection, 3584 to
# 3584 features.
class TestW8a8Int8N3584K3584(W8a8Int8Base):
    name = "w8a8_int8_n3584_k3584"  # model:qwen2.5-7b
    axes = {"N": 3584, "K": 3584}
    sha256 = "a08a9e04de336ddff711bb54f45804aebaa8fba44188fe1bab8858c06d1edea9"

# Matrix product out = x @ weight.T of int8 codes: fused gate and up projection, 3584 to
# 37888 features.
class TestW8a8Int8N37888K3584(W8a8Int8Base):
    name = "w8a8_int8_n37888_k3584"  # model:qwen2.5-7b
    axes = {"N": 37888, "K": 3584}
    sha256 = "e982677e69aaa05b8e112cc7655bea4a8a2b1c5326ad98fd8521f6008beb5bd9"

# Matrix product out = x @ weight.T of int8 codes: down projection, 14336 to 4096
# features.
class TestW8a8Int8N4096K14336(W8a8Int8Base):
    name = "w8a8_int8_n4096_k14336"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 14336}
    sha256 = "7085285fcb702cbb3edca7d2ba8069a1be7746db08d63d97e68007058832a83e"

# Matrix product out = x @ weight.T of int8 codes: attention output projection, 4096 to
# 4096 features.
class TestW8a8Int8N4096K4096(W8a8Int8Base):
    name = "w8a8_int8_n4096_k4096"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 4096}
    sha256 = "32720cf59ab751d7e6361f86f3df51232776267c599e6c6267bd8e85ded1a973"

# Matrix product out = x @ weight.T of int8 codes: fused query, key and value
# projection, 3584 to 4608 features.
class TestW8a8Int8N4608K3584(W8a8Int8Base):
    name = "w8a8_int8_n4608_k3584"  # model:qwen2.5-7b
    axes = {"N": 4608, "K": 3584}
    sha256 = "3766e9b86427fe082bfeb19537276661e20fb6c58f01b406770495dd460b723a"

# Matrix product out = x @ weight.T of int8 codes: fused query, key and value
# projection, 4096 to 6144 features.
class TestW8a8Int8N6144K4096(W8a8Int8Base):
    name = "w8a8_int8_n6144_k4096"  # model:llama-3.1-8b
    axes = {"N": 6144, "K": 4096}
    sha256 = "ac2deca787f25a2016c7a409bc87744607bc29281c5b154983358d366ab0feb5"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
