"""Reference tests of op_type bias_add.

Rendered: don't edit. `gen-tests --op-type bias_add` renders this file anew.

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

import sys
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.bias_add.relations import sum_relations
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
# relations: generator.ops.op_types.bias_add.relations

TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=0.0, nmse=1.6e-5),
        "a sum that is rounded once to bfloat16: half an ulp is 2^-8 of a value at most, "
        "and 2^-16 = 1.53e-5 its square",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=0.0, nmse=1.6e-5),
        "both sides add in float32, where nothing cancels that they do not share, and "
        "round once: to neighbours at most, 2^-7 apart",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return batches of ordinary rows, of sums that cancel, and of a large bias."""
    return [
        Case("one-row", "small", {"num_tokens": 1}),
        Case("odd-rows", "small", {"num_tokens": 7}),
        Case("nearly-cancelled", "small", {"num_tokens": 3}, {"opposite": True}),
        Case("large-bias", "small", {"num_tokens": 3}, {"std": 300.0}),
        Case("zero-rows", "small", {"num_tokens": 5}, {"zero_rows": 2}),
        Case("batch", "medium", {"num_tokens": 67}),
        past_limits("num_tokens", 8_219),
        Case("long-batch", "large", {"num_tokens": 16_384}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return input bfloat16 [num_tokens, features] and bias bfloat16 [features].

    As many rows as the case says are zero.
    """
    rows, columns = case.axes["num_tokens"], definition.axes["features"]
    bias = stream.child("bias").values((columns,), case.params.get("std", 0.5))
    x = stream.child("input").values((rows, columns))
    if case.params.get("opposite"):
        x = 0.01 * x - bias
    x[: case.params.get("zero_rows", 0)] = 0.0
    return {"input": x.to(torch.bfloat16), "bias": bias.to(torch.bfloat16)}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the sums, float64 [num_tokens, features]."""
    bias = inputs["bias"].double().expand(inputs["input"].shape)
    return torch.stack([inputs["input"].double(), bias]).sum(dim=0)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's elementwise kernel."""
    return (Backend("add"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return torch.add of the inputs as they are."""
    return torch.add(inputs["input"], inputs["bias"])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=sum_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)


# ---- the interfaces

INTERFACE_BIAS_ADD = Interface(
    inputs={"input": "bfloat16[num_tokens, features]", "bias": "bfloat16[features]"},
    outputs={"output": "bfloat16[num_tokens, features]"},
)

# ---- the tests


class BiasAddTests(GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic):
    """What the tests of bias_add share."""

    op_type = "bias_add"
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
# (1) a sum that is rounded once to bfloat16.
# (2) both sides add in float32, where nothing cancels that they do not share, and round
# once.


# Tolerances:
#   output  source   rtol   atol  NMSE     reason
#   output  oracle   0.004  0     1.6e-05  (1)
#   output  pytorch  0.008  0     1.6e-05  (2)
def reference_bias_add():
    import torch


    @torch.no_grad()
    def run(input: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        total = input.float() + bias.float()
        return total.to(input.dtype)

    return run


class BiasAddBase(BiasAddTests):
    reference = staticmethod(reference_bias_add)
    interface = INTERFACE_BIAS_ADD

# Bias add of queries, values and outputs of attention: each row of the input plus the
# bias, rounded once to bfloat16.
class TestBiasAddN1280(BiasAddBase):
    name = "bias_add_n1280"  # model:whisper-large-v3
    axes = {"features": 1280}
    sha256 = "485511d847801a7a645c84c0ed53b4e94edc026978a237446b1454d5238a7978"

# The next 3: Bias add of queries, keys and values: each row of the input plus the bias,
# rounded once to bfloat16.
class TestBiasAddN14336(BiasAddBase):
    name = "bias_add_n14336"  # model:glm-4.6
    axes = {"features": 14336}
    sha256 = "d48c1c5362b3eaeecb608412b5a6e0990a221cdab9f2404635cfb9561d10fada"

class TestBiasAddN4608(BiasAddBase):
    name = "bias_add_n4608"  # model:qwen2.5-7b
    axes = {"features": 4608}
    sha256 = "c5f303b0fac8e5cfebcb562863636e3197133f6d00ef027e64ff06b87724e1f4"

class TestBiasAddN5120(BiasAddBase):
    name = "bias_add_n5120"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"features": 5120}
    sha256 = "5635d4dc0db3690d1c160c497767189d5db98a929abffb3d805af8ef3212ffd3"

# Bias add of attention outputs: each row of the input plus the bias, rounded once to
# bfloat16.
class TestBiasAddN2880(BiasAddBase):
    name = "bias_add_n2880"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"features": 2880}
    sha256 = "171c5f911adbee476e70a16d744b8151dcbd0b9044f68313e7b71105665ce8be"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
