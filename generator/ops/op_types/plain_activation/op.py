"""plain_activation: GELU of whole rows, by the error function, a tangent or a sigmoid.

PyTorch's kernels of the first two compute in float32 and round once; SGLang has the third.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.plain_activation.relations import activation_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_CANCELLED = (
    "for negative numbers 1 + erf and 1 + tanh cancel from 1 in float32: three errors of "
    "2^-24, times half a number of 5.5 at most"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=5e-7, nmse=1.6e-5),
        f"one rounding to bfloat16: half an ulp is 2^-8 of a value at most; {_CANCELLED}",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1e-6, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        f"2^-7 apart; {_CANCELLED}, on either side",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, numbers at either end, and such as differ most between kinds."""
    return [
        Case("one-row", "small", {"num_tokens": 1}),
        Case("odd-rows", "small", {"num_tokens": 7}, {"std": 3.0}),
        Case("negative", "small", {"num_tokens": 3}, {"mean": -2.75, "std": 0.5}),
        Case("large-values", "small", {"num_tokens": 3}, {"std": 1e3}),
        # of smaller ones half is a bfloat16 number, and what the square adds is rounded away
        Case("small-values", "small", {"num_tokens": 3}, {"std": 2.0**-4}),
        Case("batch", "medium", {"num_tokens": 67}, {"std": 2.0}),
        past_limits("num_tokens", 8_219, {"std": 2.0}),
        Case("long-batch", "large", {"num_tokens": 8_192}, {"std": 2.0}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return x bfloat16 [num_tokens, intermediate_size]; the first number is 0."""
    shape = (case.axes["num_tokens"], definition.axes["intermediate_size"])
    x = stream.child("x").values(shape, case.params.get("std", 1.0))
    x += case.params.get("mean", 0.0)
    x[0, 0] = 0.0
    return {"x": x.to(torch.bfloat16)}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the result in float64, of functions that lose no digit for negative ones."""
    x: torch.Tensor = inputs["x"].double()
    if "quick" in definition.constants:
        return x * _sigmoid(1.702 * x)
    if "tanh" in definition.constants:
        # (1 + tanh(z)) / 2 = sigmoid(2z)
        return x * _sigmoid(math.sqrt(8.0 / math.pi) * (x + 0.044715 * x**3))
    share: torch.Tensor = torch.special.erfc(-x / math.sqrt(2.0)) / 2.0
    return x * share


def _sigmoid(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(-torch.logaddexp(torch.zeros_like(x), -x))


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code of quick GELU; of the others it calls PyTorch."""
    quick = "quick" in definition.constants
    return (Backend("native", needs_cuda=False),) if quick else ()


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Call the layer's native code in float32, and round once as a kernel would."""
    from sglang.srt.layers.activation import QuickGELU

    x = inputs["x"]
    output: torch.Tensor = QuickGELU().forward_native(x.float()).to(x.dtype)
    return output


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's kernels, of which quick GELU is none."""
    return () if "quick" in definition.constants else (Backend("gelu"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return torch.nn.functional.gelu of the rows as they are."""
    kind = "tanh" if "tanh" in definition.constants else "none"
    return torch.nn.functional.gelu(inputs["x"], approximate=kind)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=activation_relations,
    tolerances=TOLERANCES,
    kernels={
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
)
