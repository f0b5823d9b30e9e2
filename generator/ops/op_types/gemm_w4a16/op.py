"""gemm_w4a16: products of 16-bit activations with int4 weights, scales of groups of 128.

AWQ and GPTQ pack eight codes in a word, PyTorch two in a byte. Marlin, which SGLang
compiles with its complete installation, serves AWQ; with zeros of GPTQ no kernel of it
does. PyTorch's own kernel has its own packing, which its own function makes.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.gemm_w4a16.codes import awq_codes, nibbles, random_words
from generator.ops.op_types.gemm_w4a16.relations import w4a16_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
