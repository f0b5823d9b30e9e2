"""comm: the sum of ranks' partial sums, plus a residual, and the RMS norm of that.

A case holds the partial sums of all ranks. Kernels get one GPU a rank, all of this
process, which reach each other's memory; where there are fewer, they are skipped.
FlashInfer's fused kernel rounds the sum to bfloat16 before it adds the residual, and the
result again before the norm. NCCL adds here in float32.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.comm.relations import comm_relations
from generator.ops.ranks import allreduce_backends, allreduce_fusion, nccl_sum
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# deviation of the sum and of the residual, by case
_STDS = {"tiny-variance": 1e-3, "large-values": 1e4}
_ONCE = (
    "float32 arithmetic and one rounding to bfloat16: half an ulp is 2^-8 of a value at "
    "most, and 2^-16 = 1.53e-5 its square"
)
_SUM_FIRST = (
    "the kernel rounds the sum over ranks first: half an ulp of sums below 8 deviations, "
    "1.6e-2; then it rounds the rows, and so does run(): 2^-8 each"
)
_THRICE = (
    "the kernel rounds the sum over ranks, 1.6e-2 of a deviation at most, which the norm "
    "divides by 1.4 and the weight multiplies by 1.5; it rounds the rows, and both sides "
    "round once more: 3·2^-8"
)
TOLERANCES = (
    *(
        Override(output, Tolerance(4e-3, 1e-6, 1.6e-5), _ONCE, source="oracle")
        for output in ("output", "residual_out")
    ),
    Override("output", Tolerance(1.2e-2, 1.7e-2, 1.6e-5), _THRICE, source="flashinfer"),
    *(
        Override(
            "residual_out",
            Tolerance(8e-3, 1.6e-2 * std, 1.6e-5),
            _SUM_FIRST,
            source="flashinfer",
            case=case,
        )
        for case, std in (*_STDS.items(), (None, 1.0))
    ),
    *(
        Override(
            output,
            Tolerance(8e-3, 1e-6, 1.6e-5),
            "both sides round nearly the same float32 value once: to neighbours at most, "
            "2^-7 apart, and most to the same",
        )
        for output in ("output", "residual_out")
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, rows with a variance of about eps, and ranks that cancel."""
    return [
        Case("one-row", "small", {"num_tokens": 1}),
        Case("tiny-variance", "small", {"num_tokens": 8}),
        Case("large-values", "small", {"num_tokens": 3}),
        Case("zero-rows", "small", {"num_tokens": 5}, {"zero_rows": 2}),
        Case("ranks-cancel", "small", {"num_tokens": 4}, {"common": 16.0}),
        Case("batch", "medium", {"num_tokens": 67}),
        past_limits("num_tokens", 8_219),
        Case("long-batch", "large", {"num_tokens": 4096}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return partial sums, a residual, and a weight around one half; all bfloat16.

    hidden_states [world_size, num_tokens, hidden_size]. With `common`, the second half
    of the ranks has what the first half has too much.
    """
    ranks, columns = (definition.axes[name] for name in ("world_size", "hidden_size"))
    rows, std = case.axes["num_tokens"], _STDS.get(case.name, 1.0)
    none = case.params.get("zero_rows", 0)
    shape = (ranks, rows, columns)
    parts = stream.child("hidden_states").values(shape, std / math.sqrt(ranks))
    half = ranks // 2
    excess = stream.child("common").values((half, rows, columns))
    excess *= case.params.get("common", 0.0)
    parts[:half] += excess
    parts[half : 2 * half] -= excess
    parts[:, :none] = 0.0
    residual = stream.child("residual").values((rows, columns), std)
    residual[:none] = 0.0
    weight = 0.5 + stream.child("weight").values((columns,), 0.4)
    inputs = {"hidden_states": parts, "residual": residual, "weight": weight}
    return {name: value.to(torch.bfloat16) for name, value in inputs.items()}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the normalised rows and the rows, float64, rank by rank."""
    rows = inputs["residual"].double()
    for part in inputs["hidden_states"]:
        rows = rows + part.double()
    length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    mean_square = length * length / rows.shape[1]
    scale = inputs["weight"].double() / torch.sqrt(
        mean_square + definition.constants["eps"]
    )
    return rows * scale, rows


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return what FlashInfer's fused all-reduce, residual and norm gives on all ranks."""
    return allreduce_fusion(
        inputs["hidden_states"],
        inputs["residual"],
        inputs["weight"],
        definition.constants["eps"],
        oneshot=backend == "oneshot",
    )


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return NCCL, one GPU a rank."""
    rewrites = "outputs rewritten: to NCCL's sum the adapter adds residual and norm"
    return (Backend("nccl", gpus=definition.axes["world_size"], rewrites=rewrites),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return NCCL's sum plus the residual, by PyTorch's norm; all in float32."""
    rows = nccl_sum(inputs["hidden_states"].float()) + inputs["residual"].float()
    normed = torch.nn.functional.rms_norm(
        rows, rows.shape[-1:], inputs["weight"].float(), definition.constants["eps"]
    )
    return normed.bfloat16(), rows.bfloat16()


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=comm_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(allreduce_backends, flashinfer_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
)
