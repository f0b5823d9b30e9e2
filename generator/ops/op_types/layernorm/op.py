"""layernorm: (x - mean) / sqrt(variance + eps) · weight + bias over the last axis.

The variance is that of all columns, divided by their number. Weight and bias are
float32; kernels compute in float32 and round once.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.limit_cases import rows_past_limits
from generator.ops.op_types.layernorm.relations import norm_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_CANCELLED = (
    "the mean, 8 deviations at most, has a float32 error of a few 2^-24 of itself, which "
    "is 2e-6 of a deviation, and so is what a product of 6 and a bias of 3 leave"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=6e-6, nmse=1.6e-5),
        "one rounding to bfloat16: half an ulp is 2^-8 of a value at most, and 2^-16 = "
        f"1.53e-5 its square; {_CANCELLED}",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1.2e-5, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        f"2^-7 apart, and most to the same; {_CANCELLED}",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, rows with a variance of about eps, and with a large mean."""
    return [
        Case("one-row", "small", {"batch_size": 1}),
        Case("tiny-variance", "small", {"batch_size": 8}, {"std": 2e-3}),
        Case("large-values", "small", {"batch_size": 3}, {"std": 1e4}),
        Case("large-mean", "small", {"batch_size": 3}, {"mean": 8.0}),
        Case("zero-rows", "small", {"batch_size": 5}, {"zero_rows": 2}),
        Case("batch", "medium", {"batch_size": 67}),
        *rows_past_limits("batch_size", definition.axes["hidden_size"]),
        Case("long-batch", "large", {"batch_size": 16_384}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return hidden_states bfloat16 [batch_size, hidden_size], weight and bias.

    Both are float32 [hidden_size]: the weight around one half, the bias around zero.
    """
    rows, columns = case.axes["batch_size"], definition.axes["hidden_size"]
    x = stream.child("hidden_states").values((rows, columns), 1.0)
    x = case.params.get("std", 1.0) * (x + case.params.get("mean", 0.3))
    x[: case.params.get("zero_rows", 0)] = 0.0
    return {
        "hidden_states": x.to(torch.bfloat16),
        "weight": 0.5 + stream.child("weight").values((columns,), 0.4),
        "bias": stream.child("bias").values((columns,), 0.5),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows, float64 [batch_size, hidden_size], by the length of each."""
    x: torch.Tensor = inputs["hidden_states"].double()
    columns, eps = x.shape[1], definition.constants["eps"]
    centred = x - x.sum(dim=1, keepdim=True) / columns
    length = torch.linalg.vector_norm(centred, dim=1, keepdim=True)
    deviation = torch.sqrt(length * length / columns + eps)
    weight, bias = inputs["weight"].double(), inputs["bias"].double()
    normed: torch.Tensor = centred / deviation * weight + bias
    return normed


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return flashinfer.norm's rows; its `gemma` is the scale, without a one added."""
    from flashinfer import norm

    return norm.layernorm(
        inputs["hidden_states"],
        inputs["weight"],
        inputs["bias"],
        definition.constants["eps"],
    )


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code, which also runs on a CPU."""
    return (Backend("native", needs_cuda=False),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the native layer's rows: in float32, rounded once to bfloat16."""
    from sglang.srt.layers.layernorm import LayerNorm

    x = inputs["hidden_states"]
    norm = LayerNorm(x.shape[1], eps=definition.constants["eps"])
    norm.weight = torch.nn.Parameter(inputs["weight"], requires_grad=False)
    norm.bias = torch.nn.Parameter(inputs["bias"], requires_grad=False)
    out: torch.Tensor = norm.forward_native(x)
    return out


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=norm_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)
