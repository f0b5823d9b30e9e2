"""Reference tests of op_type activation_backward.

Rendered: don't edit. `gen-tests --op-type activation_backward` renders this file anew.

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

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.activation_backward.relations import gradient_relations
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
# relations: generator.ops.op_types.activation_backward.relations


def _size(definition: Definition, case: Case) -> float:
    """Return what the terms of a sum are multiplied by: inputs of the case's deviation."""
    return max(1.0, float(case.params.get("std", 1.0)))


_CANCELLED = (
    "1 and x·(1 - sigmoid) cancel where the slope crosses 0: errors of 2^-24 of 2, times "
    "a gradient and an up of 6 deviations at most"
)
TOLERANCES = (
    Override(
        "grad_input",
        Tolerance(rtol=4e-3, atol=4e-6, nmse=1.6e-5),
        "one rounding to bfloat16: half an ulp is 2^-8 of a value at most, and 2^-16 = "
        f"1.53e-5 its square; {_CANCELLED}",
        source="oracle",
        growth=_size,
    ),
    Override(
        "grad_input",
        Tolerance(rtol=8e-3, atol=2e-5, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        f"2^-7 apart; {_CANCELLED}, on a side that subtracts a square of tanh from 1 more",
        growth=_size,
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, negative inputs, those where the slope is 0, and large ones."""
    return [
        Case("one-row", "small", {"num_tokens": 1}),
        Case("odd-rows", "small", {"num_tokens": 7}, {"std": 2.0}),
        Case("negative", "small", {"num_tokens": 3}, {"mean": -4.0}),
        Case("flat", "small", {"num_tokens": 3}, {"spread": 0.05, "mean": -1.1}),
        Case("large", "small", {"num_tokens": 3}, {"std": 100.0}),
        Case("batch", "medium", {"num_tokens": 67}),
        past_limits("num_tokens", 8_219),
        Case("long-batch", "large", {"num_tokens": 8_192}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return grad_output bfloat16 [num_tokens, intermediate_size] and the input.

    The input has as many columns, or twice as many where it has a gate: its first half,
    of the case's mean.
    """
    shape = (case.axes["num_tokens"], definition.axes["intermediate_size"])
    std, mean = case.params.get("std", 1.0), case.params.get("mean", 0.0)
    x = mean + stream.child("input").values(shape, case.params.get("spread", std))
    if "gate_up_size" in definition.axes:
        x = torch.cat((x, stream.child("up").values(shape, std)), dim=1)
    return {
        "grad_output": stream.child("grad_output").values(shape).to(torch.bfloat16),
        "input": x.to(torch.bfloat16),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the gradient in float64, of the shape of the input, by autograd."""
    x = inputs["input"].double().requires_grad_()
    with torch.enable_grad():
        if "gelu" in definition.constants:
            inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
            output = 0.5 * x * (1.0 + torch.tanh(inner))
        else:
            size = definition.axes["intermediate_size"]
            output = x[:, :size] * torch.sigmoid(x[:, :size]) * x[:, size:]
        grads = torch.autograd.grad(output, x, inputs["grad_output"].double())
    grad: torch.Tensor = grads[0]
    return grad


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's kernel for the gradient of GELU."""
    return (Backend("gelu_backward"),) if "gelu" in definition.constants else ()


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return what the backward pass of torch.nn.functional.gelu calls."""
    return torch.ops.aten.gelu_backward(
        inputs["grad_output"], inputs["input"], approximate="tanh"
    )


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=gradient_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)


# ---- the interfaces

INTERFACE_GELU_TANH_BACKWARD = Interface(
    inputs={
        "grad_output": "bfloat16[num_tokens, intermediate_size]",
        "input": "bfloat16[num_tokens, intermediate_size]",
    },
    outputs={"grad_input": "bfloat16[num_tokens, intermediate_size]"},
)
INTERFACE_SILU_AND_MUL_BACKWARD = Interface(
    inputs={
        "grad_output": "bfloat16[num_tokens, intermediate_size]",
        "input": "bfloat16[num_tokens, gate_up_size]",
    },
    outputs={"grad_input": "bfloat16[num_tokens, gate_up_size]"},
    constraints=("gate_up_size == 2 * intermediate_size",),
)

# ---- the tests


class ActivationBackwardTests(
    GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of activation_backward share."""

    op_type = "activation_backward"
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


# Gradient of x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2. In float32,
# rounded once to bfloat16.
# mode:training
# Tolerances:
#   output      source   rtol   atol    NMSE     reason
#   grad_input  oracle   0.004  4e-06*  1.6e-05  (1)
#   grad_input  pytorch  0.008  2e-05*  1.6e-05  (2)
def reference_gelu_tanh_backward():
    import math

    import torch

    CUBIC = 0.044715


    @torch.no_grad()
    def run(grad_output: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
        x = input.float()
        root = math.sqrt(2.0 / math.pi)
        # (1 + tanh(z)) / 2 is sigmoid(2 z), which loses no digit for negative z.
        doubled = 2.0 * root * (x + CUBIC * x.pow(3))
        share, rest = doubled.sigmoid(), (-doubled).sigmoid()
        steepness = 2.0 * root * (1.0 + 3.0 * CUBIC * x.square())
        slope = share * (1.0 + x * rest * steepness)
        return (grad_output.float() * slope).to(input.dtype)

    return run


class GeluTanhBackwardBase(ActivationBackwardTests):
    reference = staticmethod(reference_gelu_tanh_backward)
    interface = INTERFACE_GELU_TANH_BACKWARD
    constants = ("gelu",)
    GELU = True  # "gelu" in the name

class TestGeluTanhBackwardI3072(GeluTanhBackwardBase):
    name = "gelu_tanh_backward_i3072"  # model:gpt2
    axes = {"intermediate_size": 3072}
    sha256 = "c96960b10c6ccd705001e66c551fbf200c59a514a6ee7c23d9368587c550cdaf"

class TestGeluTanhBackwardI6400(GeluTanhBackwardBase):
    name = "gelu_tanh_backward_i6400"  # model:gpt2-xl
    axes = {"intermediate_size": 6400}
    sha256 = "81459d538b56fb7e78200e3ed871e234f135a4bb8bf793740d99337200b458e2"


# Gradients of silu(gate) * up, of the gate in the first half of a row and of up in the
# second, as the input has them. In float32, rounded once to bfloat16.
# mode:training
# Tolerances: those of reference_gelu_tanh_backward.
def reference_silu_and_mul_backward():
    import torch


    @torch.no_grad()
    def run(grad_output: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
        gate, up = input.float().chunk(2, dim=-1)
        grad = grad_output.float()
        share = gate.sigmoid()
        slope = share * (1.0 + gate * (1.0 - share))
        grad_input = torch.cat((grad * up * slope, grad * gate * share), dim=-1)
        return grad_input.to(input.dtype)

    return run


class SiluAndMulBackwardBase(ActivationBackwardTests):
    reference = staticmethod(reference_silu_and_mul_backward)
    interface = INTERFACE_SILU_AND_MUL_BACKWARD

class TestSiluAndMulBackwardI12288(SiluAndMulBackwardBase):
    name = "silu_and_mul_backward_i12288"  # model:qwen3-8b
    axes = {"intermediate_size": 12288, "gate_up_size": 24576}
    sha256 = "188c7d93756ddec5f6b871fd0afe34bb29e119617ac29ff0de74543871601a09"

class TestSiluAndMulBackwardI14336(SiluAndMulBackwardBase):
    name = "silu_and_mul_backward_i14336"  # model:llama-3.1-8b
    axes = {"intermediate_size": 14336, "gate_up_size": 28672}
    sha256 = "53f3a7b0e8f97df32aaa45bfc04823141d2be4badf27fbc05ee4a3f9c80790f7"

class TestSiluAndMulBackwardI8192(SiluAndMulBackwardBase):
    name = "silu_and_mul_backward_i8192"  # model:llama-3.2-1b
    axes = {"intermediate_size": 8192, "gate_up_size": 16384}
    sha256 = "f90174ab3052a0c59c5181f5ebcdbb7c2053ae5f6d59908b73e6b4a88d8b15ad"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
