"""Reference tests of op_type moe_sum.

Rendered: don't edit. `gen-tests --op-type moe_sum` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
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

import sys
from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.moe_sum.relations import sum_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.moe_sum.relations


def _size(definition: Definition, case: Case) -> float:
    """Return what a case multiplies the sums, and their errors, by."""
    factor = 2.0 ** case.moved.get("routed_scaling_factor", 0.0)
    return float(factor * case.params.get("factor", 1.0) * case.params.get("std", 1.0))


_SUMMED = (
    "a float32 sum of ten rows, of 30 in all at most, is off by 2^-24 of a partial sum in "
    "each of nine steps; where the rows cancel, that is left"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=4e-6, nmse=1.6e-5),
        f"one rounding to bfloat16: half an ulp is 2^-8 of a value at most; {_SUMMED}",
        source="oracle",
        growth=_size,
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=8e-6, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        f"2^-7 apart; {_SUMMED}",
        growth=_size,
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return batches with and without a factor, and rows that cancel."""
    odd = Case("odd-tokens", "small", {"num_tokens": 7}, {"factor": 2.5})
    return [
        Case("one-token", "small", {"num_tokens": 1}),
        odd,
        Case("cancelling", "small", {"num_tokens": 3}, {"opposite": True}),
        Case("large", "small", {"num_tokens": 3}, {"std": 200.0, "factor": 2.827}),
        Case("batch", "medium", {"num_tokens": 67}, {"factor": 2.5}),
        *far_apart(odd, "routed_scaling_factor", exponent=20.0),
        past_limits("num_tokens", 8_219, {"factor": 2.5}),
        Case("long-batch", "large", {"num_tokens": 8_192}, {"factor": 2.5}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return expert_output bfloat16 [num_tokens, topk, hidden_size], and the factor.

    Experts have weights that fall: the last ones add little.
    """
    spec = definition.interface.input_specs["expert_output"]
    shape = shape_of(spec, {**definition.axes, **case.axes})
    rows = stream.child("expert_output").values(shape, case.params.get("std", 1.0))
    weights = 1.0 / torch.arange(1.0, shape[1] + 1.0)
    rows = rows * weights[:, None]
    if case.params.get("opposite"):
        rows[:, -1] = -rows[:, :-1].sum(dim=1) + 0.01 * rows[:, -1]
    return {
        "expert_output": rows.to(torch.bfloat16),
        "routed_scaling_factor": case.params.get("factor", 1.0),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the sums, float64 [num_tokens, hidden_size], an expert at a time."""
    factor = inputs["routed_scaling_factor"]
    parts = inputs["expert_output"].double().unbind(1)
    total: torch.Tensor = parts[-1] * factor
    for part in reversed(parts[:-1]):
        total = total + part * factor
    return total


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's Triton kernel."""
    return (Backend("triton", needs=("triton",)),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return what moe_sum_reduce_triton writes to a new tensor."""
    from sglang.kernels.ops.moe.fused_moe_triton_kernels import moe_sum_reduce_triton

    rows = inputs["expert_output"]
    output = torch.empty_like(rows[:, 0], memory_format=torch.contiguous_format)
    moe_sum_reduce_triton(rows, output, inputs["routed_scaling_factor"])
    return output


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=sum_relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)


# ---- the interfaces

INTERFACE_MOE_SUM = Interface(
    inputs={
        "expert_output": "bfloat16[num_tokens, topk, hidden_size]",
        "routed_scaling_factor": "float32",
    },
    outputs={"output": "bfloat16[num_tokens, hidden_size]"},
)

# ---- the tests


class MoeSumTests(GroundTruthsAgree, matches("sglang"), MatchesRecorded, Metamorphic):
    """What the tests of moe_sum share."""

    op_type = "moe_sum"
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


# Sum of the rows that a token's topk experts return, which are weighted already, times
# routed_scaling_factor. In float32, rounded once to bfloat16.
# Tolerances:
#   output  source  rtol   atol    NMSE     reason
#   output  oracle  0.004  4e-06*  1.6e-05  (1)
#   output  sglang  0.008  8e-06*  1.6e-05  (2)
def reference_moe_sum():
    import torch


    @torch.no_grad()
    def run(expert_output: torch.Tensor, routed_scaling_factor: float) -> torch.Tensor:
        total = expert_output.float().sum(dim=1) * routed_scaling_factor
        return total.to(expert_output.dtype)

    return run


class MoeSumBase(MoeSumTests):
    reference = staticmethod(reference_moe_sum)
    interface = INTERFACE_MOE_SUM

class TestMoeSumK10H2048(MoeSumBase):
    name = "moe_sum_k10_h2048"  # model:qwen3-next-80b-a3b
    axes = {"topk": 10, "hidden_size": 2048}
    sha256 = "2c4b7ac977aef1de792bc34e43d585de390baca70771bb6fa6e2300f90ea3a78"

class TestMoeSumK2H4096(MoeSumBase):
    name = "moe_sum_k2_h4096"  # model:mixtral-8x7b
    axes = {"topk": 2, "hidden_size": 4096}
    sha256 = "bf42d313168f0757a8745ccec28e9915918b85d1e65d7a5e95c23d562724065e"

class TestMoeSumK2H6144(MoeSumBase):
    name = "moe_sum_k2_h6144"  # model:mixtral-8x22b
    axes = {"topk": 2, "hidden_size": 6144}
    sha256 = "0f5d691f938865ddec4d3321e953343a4fda18c14402529e41bcd8cc9338f00e"

class TestMoeSumK4H2880(MoeSumBase):
    name = "moe_sum_k4_h2880"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"topk": 4, "hidden_size": 2880}
    sha256 = "b45960130ffdb50ad35d6e1d5c8ca67ed28463add2c13e83f58ccab6825826e1"

class TestMoeSumK8H2048(MoeSumBase):
    name = "moe_sum_k8_h2048"  # model:qwen3-30b-a3b
    axes = {"topk": 8, "hidden_size": 2048}
    sha256 = "1f6f7d3b4c27f7b753f64653ad8cc41b195a6149b1ede29ea468c9c2b60249b9"

class TestMoeSumK8H3072(MoeSumBase):
    name = "moe_sum_k8_h3072"  # model:minimax-m2
    axes = {"topk": 8, "hidden_size": 3072}
    sha256 = "b1706410be5b09b0bf50844326c0631db30f100cd69a49f6e20b3ecbe372b9c9"

class TestMoeSumK8H4096(MoeSumBase):
    name = "moe_sum_k8_h4096"  # model:qwen3-235b-a22b
    axes = {"topk": 8, "hidden_size": 4096}
    sha256 = "40edf70afcd633a7e61244c196fb835dc0c9735c125ce4df5b8ee396c7d3ccf3"

class TestMoeSumK8H5120(MoeSumBase):
    name = "moe_sum_k8_h5120"  # model:glm-4.6
    axes = {"topk": 8, "hidden_size": 5120}
    sha256 = "b9a89b12885ffa0cf47788bc75b4e77ac72aa7b1f1c9edeb9a918a95ee11264a"

class TestMoeSumK8H7168(MoeSumBase):
    name = "moe_sum_k8_h7168"  # model:deepseek-v3, model:deepseek-r1
    axes = {"topk": 8, "hidden_size": 7168}
    sha256 = "5c8660b350fb81c0f347f3269f56a9197be8d2cd70543af12956b41ae9ce90e1"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
