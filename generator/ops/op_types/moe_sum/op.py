"""moe_sum: rows of a token's experts added up in float32, times a factor.

The production kernel is SGLang's Triton one, which its fused experts end with.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.moe_sum.relations import sum_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op


def _size(definition: Definition, case: Case) -> float:
    """Return what a case multiplies the sums, and their errors, by."""
    factor = 2.0 ** case.moved.get("routed_scaling_factor", 0.0)
    return float(factor * case.params.get("factor", 1.0) * case.params.get("std", 1.0))


_SUMMED = (
    "a float32 sum of ten rows, of 30 in all at most, is off by 2^-24 of a partial sum in "
    "each of nine steps; where the rows cancel, that is left"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=4e-6, nmse=1.6e-5),
        f"one rounding to bfloat16: half an ulp is 2^-8 of a value at most; {_SUMMED}",
        source="oracle",
        growth=_size,
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=8e-6, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        f"2^-7 apart; {_SUMMED}",
        growth=_size,
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return batches with and without a factor, and rows that cancel."""
    odd = Case("odd-tokens", "small", {"num_tokens": 7}, {"factor": 2.5})
    return [
        Case("one-token", "small", {"num_tokens": 1}),
        odd,
        Case("cancelling", "small", {"num_tokens": 3}, {"opposite": True}),
        Case("large", "small", {"num_tokens": 3}, {"std": 200.0, "factor": 2.827}),
        Case("batch", "medium", {"num_tokens": 67}, {"factor": 2.5}),
        *far_apart(odd, "routed_scaling_factor", exponent=20.0),
        past_limits("num_tokens", 8_219, {"factor": 2.5}),
        Case("long-batch", "large", {"num_tokens": 8_192}, {"factor": 2.5}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return expert_output bfloat16 [num_tokens, topk, hidden_size], and the factor.

    Experts have weights that fall: the last ones add little.
    """
    spec = definition.interface.input_specs["expert_output"]
    shape = shape_of(spec, {**definition.axes, **case.axes})
    rows = stream.child("expert_output").values(shape, case.params.get("std", 1.0))
    weights = 1.0 / torch.arange(1.0, shape[1] + 1.0)
    rows = rows * weights[:, None]
    if case.params.get("opposite"):
        rows[:, -1] = -rows[:, :-1].sum(dim=1) + 0.01 * rows[:, -1]
    return {
        "expert_output": rows.to(torch.bfloat16),
        "routed_scaling_factor": case.params.get("factor", 1.0),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the sums, float64 [num_tokens, hidden_size], an expert at a time."""
    factor = inputs["routed_scaling_factor"]
    parts = inputs["expert_output"].double().unbind(1)
    total: torch.Tensor = parts[-1] * factor
    for part in reversed(parts[:-1]):
        total = total + part * factor
    return total


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's Triton kernel."""
    return (Backend("triton", needs=("triton",)),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return what moe_sum_reduce_triton writes to a new tensor."""
    from sglang.kernels.ops.moe.fused_moe_triton_kernels import moe_sum_reduce_triton

    rows = inputs["expert_output"]
    output = torch.empty_like(rows[:, 0], memory_format=torch.contiguous_format)
    moe_sum_reduce_triton(rows, output, inputs["routed_scaling_factor"])
    return output


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=sum_relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)
