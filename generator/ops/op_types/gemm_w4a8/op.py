"""gemm_w4a8: e4m3 activations times packed int4 weights, scaled by groups of 128 terms.

The oracle looks each weight up in a table of bytes, and adds up the groups' products in
float64. No kernel of a library here computes it: PyTorch multiplies unpacked weights.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.far_factors import far_apart, far_codes
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.gemm_w4a8.relations import product_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_GROUP = 128


def _size(definition: Definition, case: Case) -> float:
    """Return what a case multiplies the outputs by: scales, one up and one down."""
    return float(
        2.0 ** sum(case.moved.get(name, 0.0) for name in ("a_scale", "w_scale"))
    )


TOLERANCES = (
    Override(
        "out",
        Tolerance(rtol=4e-3, atol=5e-5, nmse=1.6e-5),
        "one rounding to bfloat16: half an ulp is 2^-8 of a value at most; float32 sums of "
        "at most 14336 products, of about 1 in all, whose weights are rounded by 2^-24 of "
        "themselves, are off by 1.2e-5 root mean square where they cancel: four deviations",
        source="oracle",
        growth=_size,
    ),
    Override(
        "out",
        Tolerance(rtol=8e-3, atol=1e-4, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, 2^-7 "
        "apart; where products cancel, the errors of both sides are left",
        growth=_size,
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return one row, odd numbers, every code and scales far from the usual."""
    odd = Case("odd-rows", "small", {"M": 7})
    return [
        Case("one-row", "small", {"M": 1}),
        odd,
        Case("every-code", "small", {"M": 3}, {"codes": "in turn"}),
        Case("batch", "medium", {"M": 65}),
        *far_apart(odd, "a_scale"),
        *far_codes(odd, a=1, a_scale=-1),
        *(_named(case) for case in far_apart(odd, "w_scale")),
        past_limits("M", 8_219),
        Case("many-rows", "large", {"M": 2_048}),
    ]


def _named(case: Case) -> Case:
    return Case(f"weights-{case.name}", case.size, case.axes, moved=case.moved)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return codes and scales of which products are about 1.

    a float8_e4m3fn [M, K], qweight int8 [N, K / 2], w_scale bfloat16 [N, K / 128].
    """
    m, n, k = case.axes["M"], definition.axes["N"], definition.axes["K"]
    a = stream.child("a").values((m, k), 120.0)
    # columns of a product would be alike if rows of codes were
    codes = stream.child("qweight").integer_tensor(0, 256, n * min(k // 2, 1024))
    codes = codes.view(n, -1).repeat(1, -(-k // 2 // min(k // 2, 1024)))[:, : k // 2]
    if case.params.get("codes"):
        codes = (torch.arange(n)[:, None] + torch.arange(k // 2)) % 256
    scales = 1.0 + 0.4 * stream.child("w_scale").values((n, k // _GROUP), 0.5)
    return {
        "a": a.clamp(-448.0, 448.0).to(torch.float8_e4m3fn),
        "qweight": codes.to(torch.uint8).view(torch.int8),
        "w_scale": (scales / (4.6 * math.sqrt(k))).to(torch.bfloat16),
        "a_scale": 1.0 / 120.0,
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the product, float64 [M, N], group by group."""
    a, codes = inputs["a"].double(), inputs["qweight"]
    nibbles = [value - 16 * (value > 7) for value in range(16)]
    pairs = [(nibbles[byte & 15], nibbles[byte >> 4]) for byte in range(256)]
    table = torch.tensor(pairs, dtype=torch.float64, device=codes.device)
    weights = table[codes.view(torch.uint8).long()].flatten(1)
    total = torch.zeros(len(a), len(codes), dtype=torch.float64, device=a.device)
    scales = inputs["w_scale"].double()
    for group in range(scales.shape[1]):
        terms = slice(group * _GROUP, (group + 1) * _GROUP)
        total += a[:, terms] @ weights[:, terms].T * scales[:, group]
    scaled: torch.Tensor = total * inputs["a_scale"]
    return scaled


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return cuBLAS on unpacked weights: PyTorch has no product of float8 and int4."""
    unpacked = "inputs rewritten: weights are unpacked and scaled to float32 before"
    return (Backend("cublas", rewrites=unpacked),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the product of float32 values, times the activations' scale."""
    codes = inputs["qweight"].view(torch.uint8).unsqueeze(2)
    places = torch.tensor([0, 4], dtype=torch.uint8, device=codes.device)
    nibbles = codes.bitwise_right_shift(places).bitwise_and(15).flatten(1).float()
    weights = torch.where(nibbles > 7.0, nibbles - 16.0, nibbles)
    groups = weights.view(len(weights), -1, _GROUP) * inputs["w_scale"].unsqueeze(2)
    product = torch.mm(inputs["a"].float(), groups.flatten(1).T)
    return torch.mul(product, inputs["a_scale"]).to(torch.bfloat16)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=product_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)
