"""gemm_w8a8: products of 8-bit codes; a scale, and maybe a zero, for each row.

PyTorch's products of float8 are cuBLASLt (a scale a tensor) and CUTLASS (scales of rows
and columns); of int8 cuBLASLt's int32 sums. SGLang's kernel is Triton, for both. No
kernel that loads here takes zero points: those of CUTLASS are compiled into vLLM alone.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.far_factors import far_apart, far_codes
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.gemm_w8a8.relations import w8a8_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
