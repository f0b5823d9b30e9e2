"""Reference tests of op_type gemm_w4a8.

Rendered: don't edit. `gen-tests --op-type gemm_w4a8` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- PyTorch's CUDA kernel, live, on a CUDA device
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
from generator.ops.op_types.gemm_w4a8.relations import product_relations
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
# relations: generator.ops.op_types.gemm_w4a8.relations

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


# ---- the interfaces

INTERFACE_W4A8_FP8 = Interface(
    inputs={
        "a": "float8_e4m3fn[M, K]",
        "qweight": "int8[N, half_k]",
        "w_scale": "bfloat16[N, num_groups]",
        "a_scale": "float32",
    },
    outputs={"out": "bfloat16[M, N]"},
    constraints=("half_k == K // 2", "num_groups == K // 128"),
)

# ---- the tests


class GemmW4a8Tests(
    GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of gemm_w4a8 share."""

    op_type = "gemm_w4a8"
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
# (1) one rounding to bfloat16.
# (2) both sides round nearly the same float32 value once.


# Product of e4m3 activations, of one scale, and 4-bit weights, of a scale for each 128
# terms of an output. A byte has two weights, numbers from -8 to 7 in two's complement:
# the lower four bits are of the even term. In float32, rounded once to bfloat16.
# Tolerances:
#   output  source   rtol   atol     NMSE     reason
#   out     oracle   0.004  5e-05*   1.6e-05  (1)
#   out     pytorch  0.008  0.0001*  1.6e-05  (2)
def reference_w4a8_fp8():
    import torch

    GROUP = 128


    @torch.no_grad()
    def run(
        a: torch.Tensor, qweight: torch.Tensor, w_scale: torch.Tensor, a_scale: float
    ) -> torch.Tensor:
        # Shifted up and down again, four bits keep their sign.
        low = (qweight << 4) >> 4
        high = qweight >> 4
        weights = torch.stack((low, high), dim=-1).flatten(1).float()
        scales = w_scale.float().repeat_interleave(GROUP, dim=1)
        product = a.float() @ (weights * scales).T
        return (product * a_scale).to(torch.bfloat16)

    return run


class W4a8Fp8Base(GemmW4a8Tests):
    reference = staticmethod(reference_w4a8_fp8)
    interface = INTERFACE_W4A8_FP8

class TestW4a8Fp8N1280K8192(W4a8Fp8Base):
    name = "w4a8_fp8_n1280_k8192"  # model:llama-3.1-70b, model:llama-3.3-70b, tp:8
    axes = {"N": 1280, "K": 8192, "half_k": 4096, "num_groups": 64}
    sha256 = "e952a372ec609645bd706d7d2017ba665c9531431841e4dbe2040d6549ff6489"

class TestW4a8Fp8N28672K4096(W4a8Fp8Base):
    name = "w4a8_fp8_n28672_k4096"  # model:llama-3.1-8b
    axes = {"N": 28672, "K": 4096, "half_k": 2048, "num_groups": 32}
    sha256 = "ac0aa98180658ca0d9afdde7b746f9fcfd8daec5212ef93e5b41ce31b8fb9592"

class TestW4a8Fp8N4096K14336(W4a8Fp8Base):
    name = "w4a8_fp8_n4096_k14336"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 14336, "half_k": 7168, "num_groups": 112}
    sha256 = "e2113929befff50953b2654aa258aaafb33fdef2e0d6bae885c5e19324e09bfe"

class TestW4a8Fp8N4096K4096(W4a8Fp8Base):
    name = "w4a8_fp8_n4096_k4096"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 4096, "half_k": 2048, "num_groups": 32}
    sha256 = "8f5476940183276b3ed89b4fe2fc6dc331d8ce79328112cb1a3bfa9b0476b374"

class TestW4a8Fp8N6144K4096(W4a8Fp8Base):
    name = "w4a8_fp8_n6144_k4096"  # model:llama-3.1-8b
    axes = {"N": 6144, "K": 4096, "half_k": 2048, "num_groups": 32}
    sha256 = "9df24a4982a80224439a891477f9e13be96e02bcad6478d252b2858b9f91ebcc"

class TestW4a8Fp8N7168K8192(W4a8Fp8Base):
    name = "w4a8_fp8_n7168_k8192"  # model:llama-3.1-70b, model:llama-3.3-70b, tp:8
    axes = {"N": 7168, "K": 8192, "half_k": 4096, "num_groups": 64}
    sha256 = "7e7a007a5fdbef7267c72f643255e1b3160f6384028a84770ff3109f161a0f8f"

class TestW4a8Fp8N8192K1024(W4a8Fp8Base):
    name = "w4a8_fp8_n8192_k1024"  # model:llama-3.1-70b, model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 1024, "half_k": 512, "num_groups": 8}
    sha256 = "faca1437ae67c09d6efcfc60510154a7df7d69410648de6ce58bb017e8b74c30"

class TestW4a8Fp8N8192K3584(W4a8Fp8Base):
    name = "w4a8_fp8_n8192_k3584"  # model:llama-3.1-70b, model:llama-3.3-70b, tp:8
    axes = {"N": 8192, "K": 3584, "half_k": 1792, "num_groups": 28}
    sha256 = "90c8f032a773b71f0183797500956f04d4bb6bbc4db3becc39adb01b1279ac4e"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
