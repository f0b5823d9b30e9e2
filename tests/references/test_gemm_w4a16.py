"""Reference tests of op_type gemm_w4a16.

Rendered: don't edit. `gen-tests --op-type gemm_w4a16` renders this file anew.

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

from generator.ops.far_factors import far_apart
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.gemm_w4a16.codes import awq_codes, nibbles, random_words
from generator.ops.op_types.gemm_w4a16.relations import w4a16_relations
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
# oracle: generator.ops.op_types.gemm_w4a16.codes
# relations: generator.ops.op_types.gemm_w4a16.relations

_HALF = (
    "float32 sums of elements of about 1, rounded once: half an ulp is 2^-11 at most"
)
_BRAIN = "the same, and half an ulp is 2^-8 at most"
_MARLIN = (
    "partial sums of a column are float32 and added in float32; both sides round once, "
    "to neighbours at most: 2^-10"
)
_TINY = (
    "float32 sums in another order; both sides round once, to neighbours at most: 2^-7"
)
TOLERANCES = (
    Override("out", Tolerance(5e-4, 4e-5, 1e-7), _HALF, source="oracle"),
    Override("C", Tolerance(4e-3, 4e-5, 5e-6), _BRAIN, source="oracle"),
    Override("out", Tolerance(1e-3, 2e-4, 2e-7), _MARLIN, source="sglang"),
    Override("C", Tolerance(8e-3, 2e-4, 5e-6), _TINY, source="pytorch"),
)
_GROUP = 128
# root mean square of the difference of two even codes of 0 to 15
_SPREAD = 6.5


def cases(definition: Definition) -> list[Case]:
    """Return few and many rows, and scales near the least of their dtype."""
    rows = Case("odd-rows", "small", {"M": 7})
    # of float16 the least are near, and weights are at most 2^5 after 9 powers of two
    names, exponent = ("scales",), 9.0
    if "codes" in definition.interface.inputs:
        names, exponent = ("scales_and_zeros",), 12.0
    far = far_apart(rows, *names, against=("x",), exponent=exponent)
    return [
        *far[: 2 if "codes" in definition.interface.inputs else 1],
        Case("one-row", "small", {"M": 1}),
        rows,
        Case("small-scales", "small", {"M": 2}, {"least": True}),
        Case("rows", "medium", {"M": 65}),
        past_limits("M", 8_219),
        Case("many-rows", "large", {"M": 2048}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return random codes and zeros, and scales of which the product is about 1.

    Scales are 1 to 3 times a unit; with `least` all are 2^-14 of float16 at most, of
    which products are among its subnormal numbers, and activations are as much larger.
    """
    m, n, k = case.axes["M"], definition.axes["N"], definition.axes["K"]
    groups = k // _GROUP
    unit = 1.0 / (_SPREAD * math.sqrt(k) * 2.1)
    factor = 2.0**-14 / (4.0 * unit) if case.params.get("least") else 1.0
    drawn = stream.child("scales").integer_tensor(0, 2**16, groups * n)
    scales = (1.0 + drawn.float().view(groups, n) / 2**15) * unit * factor
    words = stream.child("qweight")
    if "codes" in definition.interface.inputs:
        packed = random_words(words, n, k // 8).view(torch.int8)
        # zeros of PyTorch's layout are values, of up to eight scales
        places = stream.child("zeros").integer_tensor(0, 16, groups * n)
        zeros = (8.0 - places.float().view(groups, n)) * scales
        return {
            "x": stream.child("x").values((m, k), 1.0 / factor, torch.bfloat16),
            "codes": packed,
            "scales_and_zeros": torch.stack((scales, zeros), dim=2).bfloat16(),
        }
    shape = (k, n // 8) if "awq" in definition.name else (k // 8, n)
    return {
        "x": stream.child("x").values((m, k), 1.0 / factor, torch.float16),
        "qweight": random_words(words, *shape),
        "qzeros": random_words(stream.child("qzeros"), groups, n // 8),
        "scales": scales.half(),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the product of rounded weights, float64 [M, N]: the whole weight at once."""
    x: torch.Tensor = inputs["x"].double()
    if "codes" in inputs:
        octets = inputs["codes"].view(torch.uint8)
        codes = torch.stack((octets // 16, octets % 16), dim=2).flatten(1).double()
        factors = inputs["scales_and_zeros"].double().repeat_interleave(_GROUP, dim=0)
        weight = (codes.T - 8.0) * factors[:, :, 0] + factors[:, :, 1]
        rounded: torch.Tensor = weight.bfloat16().double()
        return x @ rounded
    words, zero_words = inputs["qweight"], inputs["qzeros"]
    if "awq" in definition.name:
        codes, zeros = awq_codes(words), awq_codes(zero_words)
    else:
        codes = nibbles(words.T).flatten(1).T
        zeros = nibbles(zero_words).flatten(1) + 1.0
    scales = inputs["scales"].double().repeat_interleave(_GROUP, dim=0)
    weight = (codes - zeros.repeat_interleave(_GROUP, dim=0)) * scales
    halves: torch.Tensor = weight.half().double()
    return x @ halves


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernel of PyTorch's layout, none for others."""
    if "codes" in definition.interface.inputs:
        return (Backend("int4pack", min_sm=80),)
    return ()


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Call PyTorch's kernel on codes that PyTorch packs; return bfloat16 [M, N]."""
    octets = inputs["codes"].view(torch.uint8)
    packed = torch._convert_weight_to_int4pack(octets, 8)
    factors = inputs["scales_and_zeros"]
    return torch._weight_int4pack_mm(inputs["x"], packed, _GROUP, factors)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return Marlin for AWQ; that of GPTQ takes one zero for all, and none is handed it."""
    if "awq" in definition.name:
        return (Backend("marlin", min_sm=80, needs=("sgl_kernel", "tvm_ffi")),)
    return ()


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call Marlin on weights, zeros and scales as SGLang orders them; float16 [M, N]."""
    from sglang.kernels.ops.gemm.gptq_marlin import gptq_marlin_gemm
    from sglang.kernels.ops.quantization.awq_marlin_repack import awq_marlin_repack
    from sglang.srt.layers.quantization import marlin_utils

    x, n, k = inputs["x"], definition.axes["N"], definition.axes["K"]
    empty = marlin_utils.marlin_make_empty_g_idx(x.device)
    return gptq_marlin_gemm(
        x,
        None,
        awq_marlin_repack(inputs["qweight"], k, n, 4),
        marlin_utils.marlin_permute_scales(inputs["scales"], k, n, _GROUP),
        None,
        marlin_utils.awq_to_marlin_zero_points(inputs["qzeros"], k // _GROUP, n, 4),
        empty,
        empty,
        marlin_utils.marlin_make_workspace(x.device),
        marlin_utils.scalar_types.uint4,
        size_m=len(x),
        size_n=n,
        size_k=k,
        use_fp32_reduce=True,
    )


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=w4a16_relations,
    tolerances=TOLERANCES,
    kernels={
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_W4A16_AWQ = Interface(
    inputs={
        "x": "float16[M, K]",
        "qweight": "int32[K, words_n]",
        "qzeros": "int32[num_groups, words_n]",
        "scales": "float16[num_groups, N]",
    },
    outputs={"out": "float16[M, N]"},
    constraints=("num_groups == K // 128", "words_n == N // 8"),
)
INTERFACE_W4A16_GPTQ = Interface(
    inputs={
        "x": "float16[M, K]",
        "qweight": "int32[words_k, N]",
        "qzeros": "int32[num_groups, words_n]",
        "scales": "float16[num_groups, N]",
    },
    outputs={"out": "float16[M, N]"},
    constraints=("num_groups == K // 128", "words_k == K // 8", "words_n == N // 8"),
)
INTERFACE_W4A16_INT4PACK = Interface(
    inputs={
        "x": "bfloat16[M, K]",
        "codes": "int8[N, bytes_k]",
        "scales_and_zeros": "bfloat16[num_groups, N, two]",
    },
    outputs={"C": "bfloat16[M, N]"},
    constraints=("num_groups == K // 128", "bytes_k == K // 2", "two == 2"),
)

# ---- the tests


class GemmW4a16Tests(
    GroundTruthsAgree, matches("pytorch", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of gemm_w4a16 share."""

    op_type = "gemm_w4a16"
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
# (2) partial sums of a column are float32 and added in float32.
# (3) the same, and half an ulp is 2^-8 at most.
# (4) float32 sums in another order.


# Matrix product of float16 activations and int4 weights in AWQ's layout: a word of
# qweight has eight columns of a row of the weight, column j at bit 4 * (0, 4, 1, 5, 2,
# 6, 3, 7)[j], and one of qzeros eight zeros alike. A weight is (code - zero) * scale
# rounded to float16. 128 rows share zero and scale.
# quantization:int4
# Tolerances:
#   output  source   rtol    atol    NMSE   reason
#   out     oracle   0.0005  4e-05   1e-07  (1)
#   out     sglang   0.001   0.0002  2e-07  (2)
#   out     pytorch  0.001   0.001   1e-06  default
def reference_w4a16_awq():
    import torch

    GROUP = 128
    # where the eight columns of a word lie in it, in steps of four bits
    PLACES = (0, 4, 1, 5, 2, 6, 3, 7)


    def unpacked(words: torch.Tensor) -> torch.Tensor:
        columns = [(words >> (4 * place)) & 15 for place in PLACES]
        return torch.stack(columns, dim=2).flatten(1).float()


    @torch.no_grad()
    def run(
        x: torch.Tensor, qweight: torch.Tensor, qzeros: torch.Tensor, scales: torch.Tensor
    ) -> torch.Tensor:
        out = torch.zeros(x.shape[0], scales.shape[1], device=x.device)
        zeros = unpacked(qzeros)
        # A group at a time: float32 copies of all weights may take gigabytes.
        for group in range(scales.shape[0]):
            rows = slice(group * GROUP, (group + 1) * GROUP)
            codes = unpacked(qweight[rows])
            # Kernels multiply by the scale in float16: the product is rounded to it.
            weight = ((codes - zeros[group]) * scales[group].float()).half()
            out += x[:, rows].float() @ weight.float()
        return out.half()

    return run


class W4a16AwqBase(GemmW4a16Tests):
    reference = staticmethod(reference_w4a16_awq)
    interface = INTERFACE_W4A16_AWQ

# The next 2: Sums in float32, rounded to float16 at the end: fused query, key and value
# projection, K to N features.
class TestW4a16AwqN1152K3584(W4a16AwqBase):
    name = "w4a16_awq_n1152_k3584"  # model:qwen2.5-7b, tp:4
    axes = {"N": 1152, "K": 3584, "num_groups": 28, "words_n": 144}
    sha256 = "e645df70db581cc05cc2f8aa72169a5f688d7f5d1dc94d03af850f52e08dae34"

class TestW4a16AwqN1280K8192(W4a16AwqBase):
    name = "w4a16_awq_n1280_k8192"  # model:llama-3.3-70b, tp:8
    axes = {"N": 1280, "K": 8192, "num_groups": 64, "words_n": 160}
    sha256 = "3688bb1b851fffc2ef784ec38b8e0cb17be0fe3db6c4a587e451c8f1661bc595"

# The next 2: Sums in float32, rounded to float16 at the end: down projection, K to N
# features.
class TestW4a16AwqN3584K4736(W4a16AwqBase):
    name = "w4a16_awq_n3584_k4736"  # model:qwen2.5-7b, tp:4
    axes = {"N": 3584, "K": 4736, "num_groups": 37, "words_n": 448}
    sha256 = "381b97645c98b80c17d6f011fcc53cc905de6abf9c58dc42048c2cc78f6b0bf1"

class TestW4a16AwqN8192K3584(W4a16AwqBase):
    name = "w4a16_awq_n8192_k3584"  # model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 3584, "num_groups": 28, "words_n": 1024}
    sha256 = "10eef36e1288737e28dc425093f5f1c611e95df36a13df67d27771fec77aac1f"

# The next 2: Sums in float32, rounded to float16 at the end: attention output
# projection, K to N features.
class TestW4a16AwqN3584K896(W4a16AwqBase):
    name = "w4a16_awq_n3584_k896"  # model:qwen2.5-7b, tp:4
    axes = {"N": 3584, "K": 896, "num_groups": 7, "words_n": 448}
    sha256 = "a3c673e4d69d2b60fcbd8418cb0402948fadcb4953976e6a196e3762798bafb0"

class TestW4a16AwqN8192K1024(W4a16AwqBase):
    name = "w4a16_awq_n8192_k1024"  # model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 1024, "num_groups": 8, "words_n": 1024}
    sha256 = "e1c6bb9cafb4fdc7f3656857053da4b4f4ea3d049f5109cd4325838d7f3591e0"

# The next 2: Sums in float32, rounded to float16 at the end: fused gate and up
# projection, K to N features.
class TestW4a16AwqN7168K8192(W4a16AwqBase):
    name = "w4a16_awq_n7168_k8192"  # model:llama-3.3-70b, tp:8
    axes = {"N": 7168, "K": 8192, "num_groups": 64, "words_n": 896}
    sha256 = "d3d21fd44b6b6919b354f4b893b2a909d59e706073f838d301aa98d0aab8328a"

class TestW4a16AwqN9472K3584(W4a16AwqBase):
    name = "w4a16_awq_n9472_k3584"  # model:qwen2.5-7b, tp:4
    axes = {"N": 9472, "K": 3584, "num_groups": 28, "words_n": 1184}
    sha256 = "dc30c4bab5a80ac426003354d328192b9d6f424528a8d3af5e3848bffdb36bc8"


# Matrix product of float16 activations and int4 weights in GPTQ's layout, without an
# order of activations: a word of qweight has eight rows of a column of the weight, the
# first in the lowest bits, a word of qzeros eight columns, each one less than the zero.
# A weight is (code - zero) * scale rounded to float16. 128 rows share zero and scale.
# quantization:int4
# Tolerances: those of reference_w4a16_awq.
def reference_w4a16_gptq():
    import torch

    GROUP = 128


    def nibbles(words: torch.Tensor, dim: int) -> torch.Tensor:
        parts = [(words >> shift) & 15 for shift in range(0, 32, 4)]
        return torch.stack(parts, dim=dim).flatten(dim - 1, dim).float()


    @torch.no_grad()
    def run(
        x: torch.Tensor, qweight: torch.Tensor, qzeros: torch.Tensor, scales: torch.Tensor
    ) -> torch.Tensor:
        out = torch.zeros(x.shape[0], scales.shape[1], device=x.device)
        # What is stored is one less than the zero.
        zeros = nibbles(qzeros, 2) + 1
        # A group at a time: float32 copies of all weights may take gigabytes.
        for group in range(scales.shape[0]):
            rows = slice(group * GROUP, (group + 1) * GROUP)
            words = slice(group * GROUP // 8, (group + 1) * GROUP // 8)
            codes = nibbles(qweight[words], 1)
            # Kernels multiply by the scale in float16: the product is rounded to it.
            weight = ((codes - zeros[group]) * scales[group].float()).half()
            out += x[:, rows].float() @ weight.float()
        return out.half()

    return run


class W4a16GptqBase(GemmW4a16Tests):
    reference = staticmethod(reference_w4a16_gptq)
    interface = INTERFACE_W4A16_GPTQ

# The next 2: Sums in float32, rounded to float16 at the end: fused query, key and value
# projection, K to N features.
class TestW4a16GptqN1152K3584(W4a16GptqBase):
    name = "w4a16_gptq_n1152_k3584"  # model:qwen2.5-7b, tp:4
    axes = {"N": 1152, "K": 3584, "num_groups": 28, "words_n": 144, "words_k": 448}
    sha256 = "677e0021b4112e8b7e0485adc2d7a726bfc8b3ee065f649a700dc745ce00abc5"

class TestW4a16GptqN1280K8192(W4a16GptqBase):
    name = "w4a16_gptq_n1280_k8192"  # model:llama-3.3-70b, tp:8
    axes = {"N": 1280, "K": 8192, "num_groups": 64, "words_n": 160, "words_k": 1024}
    sha256 = "9b4ade19d5cf0d5b28e3be35a337dfa26f9e76ad54fcac3702b1afd3a5406385"

# The next 2: Sums in float32, rounded to float16 at the end: down projection, K to N
# features.
class TestW4a16GptqN3584K4736(W4a16GptqBase):
    name = "w4a16_gptq_n3584_k4736"  # model:qwen2.5-7b, tp:4
    axes = {"N": 3584, "K": 4736, "num_groups": 37, "words_n": 448, "words_k": 592}
    sha256 = "3c4bff09d86fd98729efedbf83f16158308a5d38f67e932ba049a291ef80176d"

class TestW4a16GptqN8192K3584(W4a16GptqBase):
    name = "w4a16_gptq_n8192_k3584"  # model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 3584, "num_groups": 28, "words_n": 1024, "words_k": 448}
    sha256 = "cdc27d986604c2bf8df687cfe235a56ff63f1ef92fd7f8932d5f273ee0af9d32"

# The next 2: Sums in float32, rounded to float16 at the end: attention output
# projection, K to N features.
class TestW4a16GptqN3584K896(W4a16GptqBase):
    name = "w4a16_gptq_n3584_k896"  # model:qwen2.5-7b, tp:4
    axes = {"N": 3584, "K": 896, "num_groups": 7, "words_n": 448, "words_k": 112}
    sha256 = "f0b20004fc4ed7e5c434c182cf903b6579f47fd91f635aaa2cae085bd73c2a1d"

class TestW4a16GptqN8192K1024(W4a16GptqBase):
    name = "w4a16_gptq_n8192_k1024"  # model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 1024, "num_groups": 8, "words_n": 1024, "words_k": 128}
    sha256 = "7cbbbd14a7d34f728e455e2853c9887b9b5c71842e38fa539fa156fe4060126d"

# The next 2: Sums in float32, rounded to float16 at the end: fused gate and up
# projection, K to N features.
class TestW4a16GptqN7168K8192(W4a16GptqBase):
    name = "w4a16_gptq_n7168_k8192"  # model:llama-3.3-70b, tp:8
    axes = {"N": 7168, "K": 8192, "num_groups": 64, "words_n": 896, "words_k": 1024}
    sha256 = "234acb3c929a02540336b989243a140157f8872a4ce5637449d35ca7206d5751"

class TestW4a16GptqN9472K3584(W4a16GptqBase):
    name = "w4a16_gptq_n9472_k3584"  # model:qwen2.5-7b, tp:4
    axes = {"N": 9472, "K": 3584, "num_groups": 28, "words_n": 1184, "words_k": 448}
    sha256 = "13215e7693e48381edd32897c6a5474c9ed2a9b1276765b3d5d92a123bd24e07"


# Matrix product of bfloat16 activations and int4 weights as PyTorch's int4 kernel takes
# them before it packs: the first of two codes is in the upper half of a byte. A weight
# is (code - 8) * scale + zero rounded to bfloat16. 128 rows share zero and scale.
# model:llama-3.1-8b, quantization:int4, tp:4
# Tolerances:
#   output  source   rtol   atol    NMSE   reason
#   C       oracle   0.004  4e-05   5e-06  (3)
#   C       pytorch  0.008  0.0002  5e-06  (4)
#   C       sglang   0.01   0.008   2e-05  default
def reference_w4a16_int4pack():
    import torch

    GROUP = 128


    @torch.no_grad()
    def run(
        x: torch.Tensor, codes: torch.Tensor, scales_and_zeros: torch.Tensor
    ) -> torch.Tensor:
        scales, zeros = scales_and_zeros.float().unbind(dim=2)
        out = torch.zeros(x.shape[0], codes.shape[0], device=x.device)
        # A group at a time: float32 copies of all weights may take gigabytes.
        for group in range(scales.shape[0]):
            columns = slice(group * GROUP // 2, (group + 1) * GROUP // 2)
            packed = codes.view(torch.uint8)[:, columns]
            pairs = torch.stack((packed >> 4, packed & 15), dim=2).flatten(1).float()
            # Kernels have the weight in bfloat16 after one fused multiplication.
            weight = (pairs - 8) * scales[group][:, None] + zeros[group][:, None]
            terms = x[:, group * GROUP : (group + 1) * GROUP].float()
            out += terms @ weight.bfloat16().float().T
        return out.bfloat16()

    return run


class W4a16Int4packBase(GemmW4a16Tests):
    reference = staticmethod(reference_w4a16_int4pack)
    interface = INTERFACE_W4A16_INT4PACK
    axes = {"two": 2}

# Sums in float32, rounded to bfloat16 at the end: fused query, key and value
# projection, 4096 to 1536 features.
class TestW4a16Int4packN1536K4096(W4a16Int4packBase):
    name = "w4a16_int4pack_n1536_k4096"
    axes = {"N": 1536, "K": 4096, "num_groups": 32, "bytes_k": 2048}
    sha256 = "2934029c0c53a122144dd4513568349be989726b5dbd45c70bca43df37196daf"

# Sums in float32, rounded to bfloat16 at the end: attention output projection, 1024 to
# 4096 features.
class TestW4a16Int4packN4096K1024(W4a16Int4packBase):
    name = "w4a16_int4pack_n4096_k1024"
    axes = {"N": 4096, "K": 1024, "num_groups": 8, "bytes_k": 512}
    sha256 = "d78f11cc177f17a6be313481b776b8997e519068aab4e318115fbd31fe100ee1"

# Sums in float32, rounded to bfloat16 at the end: down projection, 3584 to 4096
# features.
class TestW4a16Int4packN4096K3584(W4a16Int4packBase):
    name = "w4a16_int4pack_n4096_k3584"
    axes = {"N": 4096, "K": 3584, "num_groups": 28, "bytes_k": 1792}
    sha256 = "a53df3ee59a3fd0935572f979ae2d7c96f4b1b0e1f5fab580f92ace8b5debd6a"

# Sums in float32, rounded to bfloat16 at the end: fused gate and up projection, 4096 to
# 7168 features.
class TestW4a16Int4packN7168K4096(W4a16Int4packBase):
    name = "w4a16_int4pack_n7168_k4096"
    axes = {"N": 7168, "K": 4096, "num_groups": 32, "bytes_k": 2048}
    sha256 = "ca35711b56df200afe376352c8125b83a2f2f9b847210eecdf02146475d3860a"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
