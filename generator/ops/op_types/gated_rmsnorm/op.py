"""gated_rmsnorm: an RMS norm and a gate, in either order.

Without groups: x / sqrt(mean(x²) + eps) · weight · silu(gate). With groups, the gate is
first: y = x · silu(gate), and each group of columns is divided by its own root.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.limit_cases import rows_past_limits
from generator.ops.op_types.gated_rmsnorm.relations import gated_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1e-30, nmse=1.6e-5),
        "float32 arithmetic and one rounding to bfloat16: half an ulp is 2^-8 of a "
        "value at most, and 2^-16 = 1.53e-5 its square",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1e-30, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        "2^-7 apart, and most to the same",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, a variance of about eps, and gates that are closed."""
    return [
        Case("one-row", "small", {"batch_size": 1}),
        Case("tiny-variance", "small", {"batch_size": 8}, {"std": 2e-3}),
        Case("large-values", "small", {"batch_size": 3}, {"std": 1e4}),
        Case("closed-gates", "small", {"batch_size": 3}, {"gate": -8.0}),
        Case("zero-rows", "small", {"batch_size": 5}, {"zero_rows": 2}),
        Case("batch", "medium", {"batch_size": 67}),
        *rows_past_limits("batch_size", definition.axes["hidden_size"]),
        Case("long-batch", "large", {"batch_size": 16_384}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return hidden_states and gate, bfloat16 [batch_size, hidden_size], and weight.

    The weight is bfloat16, around one half: [hidden_size], or [num_groups, group_size].
    Columns differ in size, so
    that the groups of a row have different means.
    """
    rows, columns = case.axes["batch_size"], definition.axes["hidden_size"]
    x = stream.child("hidden_states").values((rows, columns), 1.0)
    x *= case.params.get("std", 1.0) * torch.linspace(0.25, 2.0, columns)
    x[: case.params.get("zero_rows", 0)] = 0.0
    gate = stream.child("gate").values((rows, columns), 2.0)
    shape: tuple[int, ...] = (columns,)
    if "num_groups" in definition.axes:
        shape = (definition.axes["num_groups"], definition.axes["group_size"])
    weight = 0.5 + stream.child("weight").values(shape, 0.4)
    return {
        "hidden_states": x.to(torch.bfloat16),
        "gate": (gate + case.params.get("gate", 0.0)).to(torch.bfloat16),
        "weight": weight.to(torch.bfloat16),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows, float64 [batch_size, hidden_size], by the length of each group."""
    x, gate = inputs["hidden_states"].double(), inputs["gate"].double()
    weight = inputs["weight"].double().flatten()
    # silu by exp(-log(1 + exp(-gate)))
    opened = gate * torch.exp(-torch.logaddexp(torch.zeros_like(gate), -gate))
    if "gate_first" not in definition.constants:
        alone: torch.Tensor = _normed(definition, x) * weight * opened
        return alone
    size = definition.axes["group_size"]
    parts = [_normed(definition, part) for part in (x * opened).split(size, dim=1)]
    grouped: torch.Tensor = torch.cat(parts, dim=1) * weight
    return grouped


def _normed(definition: Definition, x: torch.Tensor) -> torch.Tensor:
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    eps = definition.constants["eps"]
    normed: torch.Tensor = x / torch.sqrt(length * length / x.shape[1] + eps)
    return normed


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code, and the kernel that it judges."""
    return (Backend("native", needs_cuda=False), Backend("triton", needs=("triton",)))


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return bfloat16 rows; the native code is asked one group at a time."""
    from sglang.kernels.ops.attention.fla import layernorm_gated

    x, gate, weight = (
        inputs["hidden_states"],
        inputs["gate"],
        inputs["weight"].flatten(),
    )
    size = definition.axes.get("group_size", x.shape[1])
    options = {
        "eps": definition.constants["eps"],
        "norm_before_gate": "gate_first" not in definition.constants,
    }
    if backend == "triton":
        out: torch.Tensor = layernorm_gated.rms_norm_gated(
            x=x,
            weight=weight,
            bias=None,
            z=gate,
            group_size=size,
            is_rms_norm=True,
            **options,
        )
        return out
    places = range(0, x.shape[1], size)
    parts = [
        layernorm_gated.rms_norm_ref(
            *(tensor[..., i : i + size] for tensor in (x, weight)),
            None,
            z=gate[:, i : i + size],
            **options,
        )
        for i in places
    ]
    return torch.cat(parts, dim=1)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=gated_relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)
