"""bias_add: rows and a bias of as many columns, each sum rounded once to bfloat16.

The production kernel is PyTorch's elementwise sum, which adds in float32.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.bias_add.relations import sum_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
