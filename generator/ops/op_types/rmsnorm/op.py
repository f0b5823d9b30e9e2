"""rmsnorm: x / sqrt(mean(x²) + eps) · weight over the last axis, plain or fused add.

Gemma's norms have a unit offset: they multiply by 1 + weight. With the input `residual`,
x is hidden_states + residual.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.rmsnorm.relations import norm_relations
from generator.testing.definition import Backend, Case, Definition
from generator.testing.relation import Relation
from generator.testing.seeded_inputs import Stream
from generator.testing.tolerance import Override, Tolerance

TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1e-6, nmse=1.6e-5),
        "float32 arithmetic and one rounding to bfloat16: half an ulp is 2^-8 of a "
        "value at most, and 2^-16 = 1.53e-5 its square",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1e-6, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        "2^-7 apart, and most to the same",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return the cases: ordinary rows, and rows with a variance of about eps."""
    return [
        Case("one-row", "small", {"batch_size": 1}),
        Case("tiny-variance", "small", {"batch_size": 8}, {"std": 1e-3}),
        Case("large-values", "small", {"batch_size": 3}, {"std": 1e4}),
        Case("zero-rows", "small", {"batch_size": 5}, {"zero_rows": 2}),
        Case("batch", "medium", {"batch_size": 67}),
        Case("long-batch", "large", {"batch_size": 16_384}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return hidden_states, residual if declared, and a weight around one half.

    bfloat16 [batch_size, hidden_size], the weight bfloat16 [hidden_size].
    """
    rows, columns = case.axes["batch_size"], definition.axes["hidden_size"]
    std = case.params.get("std", 1.0)
    inputs = {}
    for name in ("hidden_states", "residual"):
        if name in definition.interface.inputs:
            values = stream.child(name).values((rows, columns), std)
            values[: case.params.get("zero_rows", 0)] = 0.0
            inputs[name] = values.to(torch.bfloat16)
    weight = 0.5 + stream.child("weight").values((columns,), 0.4)
    inputs["weight"] = weight.to(torch.bfloat16)
    return inputs


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the norm, float64 [batch_size, hidden_size], by the length of each row."""
    x: torch.Tensor = inputs["hidden_states"].double()
    if "residual" in inputs:
        x = x + inputs["residual"].double()
    columns, eps = x.shape[1], definition.constants["eps"]
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    offset = 1.0 if definition.constants["unit_offset"] else 0.0
    root_mean_square = torch.sqrt(length * length / columns + eps)
    weight: torch.Tensor = offset + inputs["weight"].double()
    return x / root_mean_square * weight


def relations(definition: Definition) -> list[Relation]:
    """Return the relations between calls on related rows."""
    return norm_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return flashinfer.norm's bfloat16 result; fused kernels write it to the inputs."""
    from flashinfer import norm

    eps, unit_offset = definition.constants["eps"], definition.constants["unit_offset"]
    x, weight = inputs["hidden_states"], inputs["weight"]
    if "residual" not in inputs:
        kernel = norm.gemma_rmsnorm if unit_offset else norm.rmsnorm
        return kernel(x, weight, eps)
    fused = norm.gemma_fused_add_rmsnorm if unit_offset else norm.fused_add_rmsnorm
    fused(x, inputs["residual"], weight, eps)
    return x


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code, which also runs on a CPU."""
    return (Backend("native", needs_cuda=False),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the native layer's float32 result, rounded once to bfloat16 as by kernels.

    On bfloat16 inputs Gemma's layer would round hidden_states + residual first.
    """
    from sglang.srt.layers.layernorm import GemmaRMSNorm, RMSNorm

    x, weight = inputs["hidden_states"], inputs["weight"]
    layer = GemmaRMSNorm if definition.constants["unit_offset"] else RMSNorm
    norm = layer(x.shape[1], eps=definition.constants["eps"])
    norm.weight = torch.nn.Parameter(weight, requires_grad=False)
    if "residual" not in inputs:
        out: torch.Tensor = norm.forward_native(x.float())
    else:
        out, _ = norm.forward_native(x.float(), inputs["residual"].float())
    return out.to(x.dtype)
