"""activation_backward: gradients of silu(gate) * up, and of GELU by a tangent.

The oracle is float64 autograd of a forward pass of its own. PyTorch has a kernel for
GELU; of the gated SiLU it has none that is one, but a product of three rounded terms.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.activation_backward.relations import gradient_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op


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
