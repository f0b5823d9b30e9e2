"""norm_backward: gradients of RMS norms and layer norms, of rows and of parameters.

The oracle is float64 autograd of a forward pass of its own. The production kernels are
PyTorch's fused ones, by autograd of its functions.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.norm_backward.relations import gradient_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op


def _steepness(definition: Definition, case: Case) -> float:
    """Return what rows of the case's deviation are multiplied by."""
    std = float(case.params.get("std", 1.0))
    return float((std * std + definition.constants["eps"]) ** -0.5)


def _terms(definition: Definition, case: Case) -> float:
    """Return how many gradients are summed."""
    return float(case.axes["num_tokens"])


_ROUNDED = (
    "one rounding to bfloat16: half an ulp is 2^-8 of a value at most, and 2^-16 = "
    "1.53e-5 its square"
)
TOLERANCES = (
    Override(
        "grad_input",
        Tolerance(rtol=4e-3, atol=4e-6, nmse=1.6e-5),
        f"{_ROUNDED}; where the gradient, 6 at most, and what points along the row "
        "cancel, the errors of 2^-24 of both are left, times what rows are multiplied by",
        source="oracle",
        growth=_steepness,
    ),
    Override(
        "grad_input",
        Tolerance(rtol=8e-3, atol=8e-6, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        "2^-7 apart; where terms cancel, the errors of both sides are left",
        growth=_steepness,
    ),
    *(
        Override(
            output,
            Tolerance(rtol=rtol, atol=1e-6, nmse=1.6e-5),
            f"{_ROUNDED}, or neighbours of two such; a float32 sum of n products of 6 at "
            "most is off by fewer than n roundings of 2^-24 of its terms",
            source=source,
            growth=_terms,
        )
        for output in ("grad_weight", "grad_bias")
        for source, rtol in (("oracle", 4e-3), (None, 8e-3))
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, rows with a mean square of about eps, and long ones."""
    return [
        Case("one-token", "small", {"num_tokens": 1}),
        Case("tiny-rows", "small", {"num_tokens": 8}, {"std": 2e-3}),
        Case("large-rows", "small", {"num_tokens": 3}, {"std": 1e3}),
        Case("large-mean", "small", {"num_tokens": 5}, {"mean": 2.0}),
        Case("batch", "medium", {"num_tokens": 67}),
        Case("past-limits", LIMITS, {"num_tokens": 4_157}),
        Case("long-batch", "large", {"num_tokens": 8_192}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return grad_output and hidden_states bfloat16 [num_tokens, hidden_size], weight.

    The weight, bfloat16 [hidden_size], lies around one half.
    """
    shape = (case.axes["num_tokens"], definition.axes["hidden_size"])
    x = stream.child("hidden_states").values(shape) + case.params.get("mean", 0.3)
    grad = stream.child("grad_output").values(shape) + 0.2
    weight = 0.5 + stream.child("weight").values(shape[1:], 0.4)
    return {
        "grad_output": grad.to(torch.bfloat16),
        "hidden_states": (case.params.get("std", 1.0) * x).to(torch.bfloat16),
        "weight": weight.to(torch.bfloat16),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return the gradients in float64, by autograd of lengths of rows."""
    eps, has_bias = definition.constants["eps"], _has_bias(definition)
    x = inputs["hidden_states"].double().requires_grad_()
    weight = inputs["weight"].double().requires_grad_()
    bias = torch.zeros_like(weight).requires_grad_()
    with torch.enable_grad():
        rows = x - x.sum(dim=1, keepdim=True) / x.shape[1] if has_bias else x
        square = torch.einsum("ij,ij->i", rows, rows) / x.shape[1]
        output = rows / (square + eps).sqrt().unsqueeze(1) * weight + bias
        wanted = (x, weight, bias)[: 3 if has_bias else 2]
        return torch.autograd.grad(output, wanted, inputs["grad_output"].double())


def _has_bias(definition: Definition) -> bool:
    return "grad_bias" in definition.interface.outputs


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's fused norm, forward and backward."""
    return (Backend("layer_norm" if _has_bias(definition) else "rms_norm"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, ...]:
    """Return what autograd of torch.nn.functional's norm gives."""
    x, weight = (inputs[n].requires_grad_() for n in ("hidden_states", "weight"))
    eps, shape = definition.constants["eps"], weight.shape
    with torch.enable_grad():
        if backend == "rms_norm":
            output = torch.nn.functional.rms_norm(x, shape, weight, eps)
            return torch.autograd.grad(output, (x, weight), inputs["grad_output"])
        bias = torch.zeros_like(weight, requires_grad=True)
        output = torch.nn.functional.layer_norm(x, shape, weight, bias, eps)
        return torch.autograd.grad(output, (x, weight, bias), inputs["grad_output"])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=gradient_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)
