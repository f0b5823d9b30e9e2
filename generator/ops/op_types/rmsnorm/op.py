"""rmsnorm: x / sqrt(mean(x²) + eps) · weight over the last axis, plain or fused add.

Gemma's norms have a unit offset: they multiply by 1 + weight. With the input `residual`,
x is hidden_states + residual. With the input `scale` the rows are divided by it, cut off
at 448 and rounded to e4m3 once. The activation silu(y) = y / (1 + e^-y) comes last.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.float8 import e4m3_values
from generator.ops.limit_cases import rows_past_limits
from generator.ops.op_types.rmsnorm.relations import norm_relations
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=1.25e-1, atol=2e-3, nmse=1e-5),
        "both sides round nearly the same float32 value once to e4m3: to neighbours at "
        "most, 2^-3 apart, or 2^-9 below 2^-6; that happens to one in 10^5 elements, "
        "near ties, and to less than 1e-5 of the power in any case",
        constant="quantized",
    ),
    Override(
        "new_residual",
        Tolerance(rtol=4e-3, atol=1e-30, nmse=1.6e-5),
        "one rounding of the sum to bfloat16: half an ulp is 2^-8 at most",
        source="oracle",
    ),
    Override(
        "new_residual", EXACT, "IEEE 754 fixes the float32 sum of two and its rounding"
    ),
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
    """Return the cases: ordinary rows, and rows with a variance of about eps.

    Where rows are quantised, also values beyond 448 and below 2^-6; where they are
    activated, also values far from 0.
    """
    more = []
    if "quantized" in definition.constants:
        more.append(Case("saturated", "small", {"batch_size": 3}, {"scale": 2.3e-3}))
        more.append(Case("subnormal", "small", {"batch_size": 3}, {"scale": 90.0}))
        more += far_apart(Case("", "small", {"batch_size": 3}), "weight", "scale")
    if "activation" in definition.constants:
        more.append(Case("large-weights", "small", {"batch_size": 6}, {"weight": 9.0}))
    return [
        Case("one-row", "small", {"batch_size": 1}),
        Case("tiny-variance", "small", {"batch_size": 8}, {"std": 1e-3}),
        Case("large-values", "small", {"batch_size": 3}, {"std": 1e4}),
        Case("zero-rows", "small", {"batch_size": 5}, {"zero_rows": 2}),
        *more,
        Case("batch", "medium", {"batch_size": 67}),
        *rows_past_limits("batch_size", definition.axes["hidden_size"]),
        Case("long-batch", "large", {"batch_size": 16_384}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return hidden_states, residual and scale if declared, a weight around one half.

    bfloat16 [batch_size, hidden_size], the weight bfloat16 [hidden_size], the scale a
    Python float.
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
    inputs["weight"] = (case.params.get("weight", 1.0) * weight).to(torch.bfloat16)
    if "scale" in definition.interface.inputs:
        inputs["scale"] = case.params.get("scale", 0.3)
    return inputs


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return the norm, float64 [batch_size, hidden_size], by the length of each row.

    Behind it the sum with the residual, where that is an output.
    """
    # halves by float32, which is exact and sooner
    x: torch.Tensor = inputs["hidden_states"].float().double()
    if "residual" in inputs:
        x += inputs["residual"].double()
    columns, eps = x.shape[1], definition.constants["eps"]
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    offset = 1.0 if definition.constants["unit_offset"] else 0.0
    root_mean_square = torch.sqrt(length * length / columns + eps)
    weight: torch.Tensor = offset + inputs["weight"].double()
    is_output = "new_residual" in definition.interface.outputs
    rows = (x.clone() if is_output else x).div_(root_mean_square).mul_(weight)
    if "activation" in definition.constants:
        # by e^-log(1 + e^-y), so that nothing overflows
        rows = rows * torch.exp(-torch.logaddexp(torch.zeros_like(rows), -rows))
    if "scale" in inputs:
        rows = e4m3_values(rows / inputs["scale"])
    return (rows, x) if is_output else rows


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel; that with an activation refuses GPUs below SM80.

    Those of e4m3 have no gate: below SM89 they convert in software.
    """
    return (Backend("", min_sm=80 if "activation" in definition.constants else 0),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return flashinfer.norm's rows; fused kernels write the sum over the residual."""
    from flashinfer import norm

    eps, unit_offset = definition.constants["eps"], definition.constants["unit_offset"]
    x, weight = inputs["hidden_states"], inputs["weight"]
    if "activation" in definition.constants:
        return norm.fused_rmsnorm_silu(x, weight, eps)
    if "scale" in inputs:
        out = torch.empty_like(x, dtype=torch.float8_e4m3fn)
        scale = torch.tensor([inputs["scale"]], device=x.device)
        if "residual" not in inputs:
            norm.rmsnorm_quant(out, x, weight, scale, eps)
            return out
        norm.fused_add_rmsnorm_quant(out, x, inputs["residual"], weight, scale, eps)
        return out, inputs["residual"]
    if "residual" not in inputs:
        kernel = norm.gemma_rmsnorm if unit_offset else norm.rmsnorm
        return kernel(x, weight, eps)
    fused = norm.gemma_fused_add_rmsnorm if unit_offset else norm.fused_add_rmsnorm
    fused(x, inputs["residual"], weight, eps)
    return _outputs(definition, x, inputs["residual"])


def _outputs(definition: Definition, *rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the rows, and the sum where the definition has it."""
    return rows[: len(definition.interface.outputs)]


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code, and its Triton kernel that rounds to e4m3.

    With an activation SGLang has a norm of its own, which rounds between its steps.
    """
    if "activation" in definition.constants:
        return ()
    if "quantized" in definition.constants:
        return (Backend("triton", min_sm=89, needs=("triton",)),)
    return (Backend("native", needs_cuda=False),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the native layer's float32 result, rounded once as by kernels.

    On bfloat16 inputs Gemma's layer would round hidden_states + residual first.
    """
    from sglang.srt.layers.layernorm import GemmaRMSNorm, RMSNorm

    x, weight = inputs["hidden_states"], inputs["weight"]
    layer = GemmaRMSNorm if definition.constants["unit_offset"] else RMSNorm
    norm = layer(x.shape[1], eps=definition.constants["eps"])
    norm.weight = torch.nn.Parameter(weight, requires_grad=False)
    rows: tuple[torch.Tensor, ...]
    if "residual" not in inputs:
        rows = (norm.forward_native(x.float()),)
    else:
        rows = norm.forward_native(x.float(), inputs["residual"].float())
    if backend == "native":
        return _outputs(definition, *(row.to(x.dtype) for row in rows))
    from sglang.kernels.ops.quantization.fp8_kernel import static_quant_fp8

    scale = torch.tensor([inputs["scale"]], device=x.device)
    codes, _ = static_quant_fp8(rows[0].contiguous(), scale)
    return codes, *(total.to(x.dtype) for total in rows[1:])


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
