"""collectives: sums over ranks, whole or in parts, and columns of ranks side by side.

A case holds what all ranks have. Kernels get one GPU a rank, all of this process, which
reach each other's memory; where there are fewer, they are skipped. FlashInfer's kernel
and the one that SGLang and vLLM share add in float32 and round once (packed_reduce);
NCCL's ring adds in bfloat16 and rounds at each rank, its NVLS rounds once.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.collectives.relations import collective_relations
from generator.ops.ranks import (
    allreduce,
    allreduce_backends,
    nccl_gather,
    nccl_scatter,
    nccl_sum,
)
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# deviation of the sum, by case; float16 ends at 65,504
_STDS = {"small-values": 1e-3, "large-values": 1e6}
_ONCE = (
    "float32 sums and one rounding to bfloat16: half an ulp is 2^-8 of a value at most, "
    "and 2^-16 = 1.53e-5 its square"
)
_BOTH_ONCE = (
    "both sides round nearly the same float32 value once: to neighbours at most, 2^-7 "
    "apart, and most to the same"
)
_AT_EACH_RANK = (
    "NCCL's ring rounds at each of 8 ranks: half an ulp of sums below 8 deviations is "
    "1.6e-2, seven times"
)
_OF_EXCESS = (
    "as above, of sums that grow to 4 excesses of 5.5 deviations: half an ulp is 6.3e-2, "
    "seven times, and 1/280 of their deviation of 4 each time on average"
)
_SUMS = ("reduced", "scattered")
TOLERANCES = (
    Override("gathered", EXACT, "bits are copied, none is computed"),
    *(
        Override(output, Tolerance(4e-3, 1e-6, 1.6e-5), _ONCE, source="oracle")
        for output in _SUMS
    ),
    *(
        Override(
            output,
            Tolerance(8e-3, 0.45, 2e-3),
            _OF_EXCESS,
            source="pytorch",
            case="ranks-cancel",
        )
        for output in _SUMS
    ),
    *(
        Override(
            output,
            Tolerance(8e-3, 0.11 * std, 5e-5),
            _AT_EACH_RANK,
            source="pytorch",
            case=case,
        )
        for output in _SUMS
        for case, std in (*_STDS.items(), (None, 1.0))
    ),
    *(Override(output, Tolerance(8e-3, 1e-6, 1.6e-5), _BOTH_ONCE) for output in _SUMS),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, values of other sizes, and ranks that cancel.

    Of a sum in parts each rank keeps as many tokens as another definition has in all.
    """
    if "shards" in definition.interface.inputs:
        return [
            Case("one-row", "small", {"num_tokens": 1}),
            Case("odd-rows", "small", {"num_tokens": 7}),
            Case("batch", "medium", {"num_tokens": 67}),
            past_limits("num_tokens", 8_219),
            Case("long-batch", "large", {"num_tokens": 1024}),
        ]
    ranks = definition.axes["world_size"]
    parts = "scattered" in definition.interface.outputs

    def rows(count: int) -> dict[str, int]:
        """Return the axes of so many tokens, each rank's where they are dealt out."""
        if not parts:
            return {"num_tokens": count}
        return {"num_tokens": ranks * count, "tokens_per_rank": count}

    return [
        Case("one-row", "small", rows(1)),
        Case("small-values", "small", rows(3)),
        Case("large-values", "small", rows(2)),
        Case("zero-rows", "small", rows(5), {"zero_rows": 2}),
        Case("ranks-cancel", "small", rows(4), {"common": 1.0}),
        Case("batch", "medium", rows(19 if parts else 67)),
        # slices along the tokens of a rank are no slices along all tokens: none repeats
        Case("past-limits", LIMITS, rows(521))
        if parts
        else past_limits("num_tokens", 8_219),
        Case("long-batch", "large", rows(512 if parts else 4096)),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return what each rank has, bfloat16, [world_size, num_tokens, columns].

    The sum has a deviation of about 1. With `common`, the second half of the ranks has
    what the first half has too much.
    """
    ranks, rows = definition.axes["world_size"], case.axes["num_tokens"]
    if "shards" in definition.interface.inputs:
        shape = (ranks, rows, definition.axes["shard_size"])
        return {"shards": stream.child("shards").values(shape).to(torch.bfloat16)}
    shape = (ranks, rows, definition.axes["hidden_size"])
    std, half = _STDS.get(case.name, 1.0), ranks // 2
    parts = stream.child("partial_sums").values(shape, std / math.sqrt(ranks))
    if common := case.params.get("common", 0.0):
        excess = stream.child("common").values((half, *shape[1:]), common)
        parts[:half] += excess
        parts[half : 2 * half] -= excess
    parts[:, : case.params.get("zero_rows", 0)] = 0.0
    return {"partial_sums": parts.to(torch.bfloat16)}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the sum or the whole rows, float64, rank by rank."""
    if "shards" in inputs:
        ranks, rows, share = inputs["shards"].shape
        whole = torch.empty(rows, ranks * share, dtype=torch.float64)
        for rank, shard in enumerate(inputs["shards"]):
            whole[:, rank * share : (rank + 1) * share] = shard.double()
        return whole.to(inputs["shards"].device)
    total = torch.zeros_like(inputs["partial_sums"][0], dtype=torch.float64)
    for part in inputs["partial_sums"]:
        total += part.double()
    if "scattered" in definition.interface.outputs:
        return torch.stack(total.chunk(len(inputs["partial_sums"])))
    return total


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return those of the whole sum; it has no other."""
    if "reduced" not in definition.interface.outputs:
        return ()
    return allreduce_backends(definition)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return what FlashInfer's all-reduce gives on all ranks."""
    return allreduce(inputs["partial_sums"], oneshot=backend == "oneshot")


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return NCCL, one GPU a rank."""
    return (Backend("nccl", gpus=definition.axes["world_size"]),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return what NCCL gives on all ranks, in bfloat16 as engines call it."""
    if "shards" in inputs:
        return nccl_gather(inputs["shards"])
    if "scattered" in definition.interface.outputs:
        return nccl_scatter(inputs["partial_sums"])
    return nccl_sum(inputs["partial_sums"])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=collective_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
)
