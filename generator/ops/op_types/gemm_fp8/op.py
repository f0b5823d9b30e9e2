"""gemm_fp8: products of float8_e4m3fn matrices, scaled by blocks or by tensors.

FlashInfer's block-scaled kernel is DeepGEMM, its batched one cuBLASLt; SGLang's
block-scaled one is Triton. All take the codes as they are and multiply sums by scales.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.far_factors import far_apart, far_codes
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.gemm_fp8.relations import gemm_fp8_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
