"""Reference tests of op_type collectives.

Rendered: don't edit. `gen-tests --op-type collectives` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
- PyTorch's CUDA kernel, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import math
import sys
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
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.collectives.relations

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


# ---- the interfaces

INTERFACE_ALLGATHER = Interface(
    inputs={"shards": "bfloat16[world_size, num_tokens, shard_size]"},
    outputs={"gathered": "bfloat16[num_tokens, hidden_size]"},
    constraints=("shard_size == hidden_size // world_size",),
)
INTERFACE_ALLREDUCE = Interface(
    inputs={"partial_sums": "bfloat16[world_size, num_tokens, hidden_size]"},
    outputs={"reduced": "bfloat16[num_tokens, hidden_size]"},
)
INTERFACE_REDUCE_SCATTER = Interface(
    inputs={"partial_sums": "bfloat16[world_size, num_tokens, hidden_size]"},
    outputs={"scattered": "bfloat16[world_size, tokens_per_rank, hidden_size]"},
    constraints=("num_tokens == world_size * tokens_per_rank",),
)

# ---- the tests


class CollectivesTests(
    GroundTruthsAgree, matches("flashinfer", "pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of collectives share."""

    op_type = "collectives"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.
# Reasons in short; `TOLERANCES`, or the module of bounds named above, derives them in full:
# (1) bits are copied, none is computed.
# (2) float32 sums and one rounding to bfloat16.
# (3) as above, of sums that grow to 4 excesses of 5.5 deviations.
# (4) NCCL's ring rounds at each of 8 ranks.
# (5) both sides round nearly the same float32 value once.


# The columns of world_size ranks side by side, as the logits of a vocabulary that they
# share: rank r has columns r * shard_size to (r + 1) * shard_size - 1. Bits are copied,
# none is computed. One tensor holds what all ranks have; in serving each has its own,
# and all get the rows.
# Tolerances:
#   output    source                       rtol   atol  NMSE  reason
#   gathered  oracle, flashinfer, pytorch  exact              (1)
def reference_allgather():
    import torch


    @torch.no_grad()
    def run(shards: torch.Tensor) -> torch.Tensor:
        # Rank r has columns r * shard_size to (r + 1) * shard_size - 1 of each token.
        world_size, num_tokens, shard_size = shards.shape
        return shards.transpose(0, 1).reshape(num_tokens, world_size * shard_size)

    return run


class AllgatherBase(CollectivesTests):
    reference = staticmethod(reference_allgather)
    interface = INTERFACE_ALLGATHER

class TestAllgatherTp2H151936(AllgatherBase):
    name = "allgather_tp2_h151936"  # model:qwen3-30b-a3b, tp:2
    axes = {"world_size": 2, "hidden_size": 151936, "shard_size": 75968}
    sha256 = "4f09292487876c26ccf2e2ec0772dab9d2953cc163d96108136402d852826bc7"

class TestAllgatherTp4H128256(AllgatherBase):
    name = "allgather_tp4_h128256"  # model:llama-3.1-70b, model:llama-3.3-70b, tp:4
    axes = {"world_size": 4, "hidden_size": 128256, "shard_size": 32064}
    sha256 = "69e56bec67d8d52c744f8aa57ca82137fccdceb65c27cdfd52313eab1fc1d80f"

# model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b, tp:4
class TestAllgatherTp4H151936(AllgatherBase):
    name = "allgather_tp4_h151936"
    axes = {"world_size": 4, "hidden_size": 151936, "shard_size": 37984}
    sha256 = "0867319d3212157636e0960bf4d365b5648ab04f60cab3b769337766542b89ed"

class TestAllgatherTp8H128256(AllgatherBase):
    name = "allgather_tp8_h128256"  # model:llama-3.1-70b, model:llama-3.3-70b, tp:8
    axes = {"world_size": 8, "hidden_size": 128256, "shard_size": 16032}
    sha256 = "cde49d7f46ac5b7a6780f2f6dae4f3235e01eb158ae82ea5ac7e43a953c00558"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, tp:8
class TestAllgatherTp8H129280(AllgatherBase):
    name = "allgather_tp8_h129280"
    axes = {"world_size": 8, "hidden_size": 129280, "shard_size": 16160}
    sha256 = "893e7da056b69afd6d8ea2ddae796cb85132b4683cb33f0238c80f6cadb1afe0"

# model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b, tp:8
class TestAllgatherTp8H151936(AllgatherBase):
    name = "allgather_tp8_h151936"
    axes = {"world_size": 8, "hidden_size": 151936, "shard_size": 18992}
    sha256 = "767e3b9a1782eedd2b5bc6fb923f9602c010fbdd9c1ab91150a54a4eeddda3c1"


# The sum of the partial sums of world_size ranks, as behind the embedding and each
# row-parallel layer: added in float32 and rounded to bfloat16 once; kernels that round
# in between differ by that. One tensor holds what all ranks have; in serving each has
# its own, and all get the sum.
# fi_api:flashinfer.comm.allreduce_fusion
# Tolerances:
#   output   source                   rtol   atol     NMSE     reason
#   reduced  oracle                   0.004  1e-06    1.6e-05  (2)
#   reduced  pytorch in ranks-cancel  0.008  0.45     0.002    (3)
#   reduced  pytorch in small-values  0.008  0.00011  5e-05    (4)
#   reduced  pytorch in large-values  0.008  1.1e+05  5e-05    (4)
#   reduced  pytorch                  0.008  0.11     5e-05    (4)
#   reduced  flashinfer               0.008  1e-06    1.6e-05  (5)
def reference_allreduce():
    import torch


    @torch.no_grad()
    def run(partial_sums: torch.Tensor) -> torch.Tensor:
        # Each rank has a partial sum of the same tokens; the sum is rounded once.
        total = partial_sums.float().sum(dim=0)
        return total.to(partial_sums.dtype)

    return run


class AllreduceBase(CollectivesTests):
    reference = staticmethod(reference_allreduce)
    interface = INTERFACE_ALLREDUCE

class TestAllreduceTp2H2048(AllreduceBase):
    name = "allreduce_tp2_h2048"  # model:qwen3-30b-a3b, tp:2
    axes = {"world_size": 2, "hidden_size": 2048}
    sha256 = "337b3c6a8df6feba6443af669b03e3983d3a64dcb192c116f093c8df45384068"

# model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b, tp:4
class TestAllreduceTp4H4096(AllreduceBase):
    name = "allreduce_tp4_h4096"
    axes = {"world_size": 4, "hidden_size": 4096}
    sha256 = "f4970250017c6d58cf93dd72b8cf74b7ec402256c90806c79b25cda9f7336314"

class TestAllreduceTp4H8192(AllreduceBase):
    name = "allreduce_tp4_h8192"  # model:llama-3.1-70b, model:llama-3.3-70b, tp:4
    axes = {"world_size": 4, "hidden_size": 8192}
    sha256 = "db24eef40b83006c5a5218905af51e57197b2ace0545a1b771b41858f43f5172"

# model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b, tp:8
class TestAllreduceTp8H4096(AllreduceBase):
    name = "allreduce_tp8_h4096"
    axes = {"world_size": 8, "hidden_size": 4096}
    sha256 = "8cc9640677ccb828169c249453e897fd165c793539296ec12ef9ae8d964af06f"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2, tp:8
class TestAllreduceTp8H7168(AllreduceBase):
    name = "allreduce_tp8_h7168"
    axes = {"world_size": 8, "hidden_size": 7168}
    sha256 = "2c2139b3faa15428384e20cee9d22e3cc74c6c3786a8b4ad6c4232c9e7a479a3"

class TestAllreduceTp8H8192(AllreduceBase):
    name = "allreduce_tp8_h8192"  # model:llama-3.1-70b, model:llama-3.3-70b, tp:8
    axes = {"world_size": 8, "hidden_size": 8192}
    sha256 = "84c095efa81dd6b19c476098945f58a9789756e9366ced7258ef9c43cd3d8b17"


# The sum of the partial sums of 8 ranks, of which rank r keeps tokens r *
# tokens_per_rank to (r + 1) * tokens_per_rank - 1: added in float32 and rounded to
# bfloat16 once; kernels that round in between differ by that. One tensor holds what all
# ranks have, and one what all of them keep.
# tp:8
# Tolerances:
#   output     source                   rtol   atol     NMSE     reason
#   scattered  oracle                   0.004  1e-06    1.6e-05  (2)
#   scattered  pytorch in ranks-cancel  0.008  0.45     0.002    (3)
#   scattered  pytorch in small-values  0.008  0.00011  5e-05    (4)
#   scattered  pytorch in large-values  0.008  1.1e+05  5e-05    (4)
#   scattered  pytorch                  0.008  0.11     5e-05    (4)
#   scattered  flashinfer               0.008  1e-06    1.6e-05  (5)
def reference_reduce_scatter():
    import torch


    @torch.no_grad()
    def run(partial_sums: torch.Tensor) -> torch.Tensor:
        world_size, num_tokens, hidden_size = partial_sums.shape
        # Each rank has a partial sum of the same tokens; the sum is rounded once.
        total = partial_sums.float().sum(dim=0).to(partial_sums.dtype)
        # Rank r keeps the tokens of part r, which lie together.
        return total.reshape(world_size, num_tokens // world_size, hidden_size)

    return run


class ReduceScatterBase(CollectivesTests):
    reference = staticmethod(reference_reduce_scatter)
    interface = INTERFACE_REDUCE_SCATTER
    axes = {"world_size": 8}

class TestReduceScatterTp8H4096(ReduceScatterBase):
    name = "reduce_scatter_tp8_h4096"  # model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b
    axes = {"hidden_size": 4096}
    sha256 = "e91a9889bb206a5f3dd9b95d46ca6758e1c8258abef38371fd1879d4af0290b4"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2
class TestReduceScatterTp8H7168(ReduceScatterBase):
    name = "reduce_scatter_tp8_h7168"
    axes = {"hidden_size": 7168}
    sha256 = "9db392eb81c2e3bee101295a68c4383c8fe829f5abf99905bf0b72f90ba24c43"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
