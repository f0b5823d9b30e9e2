"""Reference tests of op_type comm.

Rendered: don't edit. `gen-tests --op-type comm` renders this file anew.

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
from generator.ops.op_types.comm.relations import comm_relations
from generator.ops.ranks import allreduce_backends, allreduce_fusion, nccl_sum
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.comm.relations

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


# ---- the interfaces

INTERFACE_ALLREDUCE_ADD_RMSNORM = Interface(
    inputs={
        "hidden_states": "bfloat16[world_size, num_tokens, hidden_size]",
        "residual": "bfloat16[num_tokens, hidden_size]",
        "weight": "bfloat16[hidden_size]",
    },
    outputs={
        "output": "bfloat16[num_tokens, hidden_size]",
        "residual_out": "bfloat16[num_tokens, hidden_size]",
    },
)

# ---- the tests


class CommTests(
    GroundTruthsAgree, matches("flashinfer", "pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of comm share."""

    op_type = "comm"
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
# (1) float32 arithmetic and one rounding to bfloat16.
# (2) the kernel rounds the sum over ranks, 1.6e-2 of a deviation at most, which the
# norm divides by 1.4 and the weight multiplies by 1.5.
# (3) both sides round nearly the same float32 value once.
# (4) the kernel rounds the sum over ranks first.


# What world_size ranks of tensor parallelism compute behind a row-parallel layer: x =
# sum of the ranks' partial sums + residual, and its RMS norm x * rsqrt(mean(x^2) +
# 1e-05) * weight, in float32, both rounded to bfloat16 at the end. One tensor holds the
# partial sums of all ranks; in serving each rank has its own, and all get the same
# outputs.
# model:llama-3.1-70b, fused, fi_api:flashinfer.comm.allreduce_fusion
# Tolerances:
#   output        source                       rtol   atol     NMSE     reason
#   output        oracle                       0.004  1e-06    1.6e-05  (1)
#   output        flashinfer                   0.012  0.017    1.6e-05  (2)
#   output        pytorch                      0.008  1e-06    1.6e-05  (3)
#   residual_out  oracle                       0.004  1e-06    1.6e-05  (1)
#   residual_out  flashinfer in tiny-variance  0.008  1.6e-05  1.6e-05  (4)
#   residual_out  flashinfer in large-values   0.008  160      1.6e-05  (4)
#   residual_out  flashinfer                   0.008  0.016    1.6e-05  (4)
#   residual_out  pytorch                      0.008  1e-06    1.6e-05  (3)
def reference_allreduce_add_rmsnorm_h8192():
    import torch

    EPS = 1e-05


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # Each rank has a partial sum of the same tokens; the residual is the same on all.
        x = hidden_states.float().sum(dim=0) + residual.float()
        # The sum is not rounded before it is normalised.
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        output = x * inverse_rms * weight.float()
        return output.to(hidden_states.dtype), x.to(residual.dtype)

    return run


class AllreduceAddRmsnormH8192Base(CommTests):
    reference = staticmethod(reference_allreduce_add_rmsnorm_h8192)
    interface = INTERFACE_ALLREDUCE_ADD_RMSNORM
    axes = {"hidden_size": 8192}
    constants = ("eps",)
    EPS = 1e-05  # "1em5" in the name, rms_norm_eps of llama-3.1-70b

class TestAllreduceAddRmsnormEps1em5Tp4H8192(AllreduceAddRmsnormH8192Base):
    name = "allreduce_add_rmsnorm_eps_1em5_tp4_h8192"  # model:llama-3.3-70b, tp:4
    axes = {"world_size": 4}
    sha256 = "074350e679a297fd45d34b3040b87c80809e7559d659530941e5b0c4a554525c"

class TestAllreduceAddRmsnormEps1em5Tp8H8192(AllreduceAddRmsnormH8192Base):
    name = "allreduce_add_rmsnorm_eps_1em5_tp8_h8192"  # model:llama-3.3-70b, tp:8
    axes = {"world_size": 8}
    sha256 = "e3d662f7d952c3f835a923b4179ebf5db31d6b742cf1708a738145f9787db579"

class TestAllreduceAddRmsnormTp2H8192(AllreduceAddRmsnormH8192Base):
    name = "allreduce_add_rmsnorm_tp2_h8192"  # tp:2
    axes = {"world_size": 2}
    sha256 = "36efb8c4a82abde36ce9b3532b49e40bbef54eff284785b9b4a55c2bd6ef0fcc"


# What world_size ranks of tensor parallelism compute behind a row-parallel layer: x =
# sum of the ranks' partial sums + residual, and its RMS norm x * rsqrt(mean(x^2) +
# 1e-06) * weight, in float32, both rounded to bfloat16 at the end. One tensor holds the
# partial sums of all ranks; in serving each rank has its own, and all get the same
# outputs.
# fused, fi_api:flashinfer.comm.allreduce_fusion
# Tolerances: those of reference_allreduce_add_rmsnorm_h8192.
def reference_allreduce_add_rmsnorm():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # Each rank has a partial sum of the same tokens; the residual is the same on all.
        x = hidden_states.float().sum(dim=0) + residual.float()
        # The sum is not rounded before it is normalised.
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        output = x * inverse_rms * weight.float()
        return output.to(hidden_states.dtype), x.to(residual.dtype)

    return run


class AllreduceAddRmsnormBase(CommTests):
    reference = staticmethod(reference_allreduce_add_rmsnorm)
    interface = INTERFACE_ALLREDUCE_ADD_RMSNORM
    constants = ("eps",)
    EPS = 1e-06  # "1em6" in the name, rms_norm_eps of qwen3-30b-a3b, deepseek-v3

# model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b, tp:4
class TestAllreduceAddRmsnormEps1em6Tp4H4096(AllreduceAddRmsnormBase):
    name = "allreduce_add_rmsnorm_eps_1em6_tp4_h4096"
    axes = {"world_size": 4, "hidden_size": 4096}
    sha256 = "1c595749c04b8de0ff9ad19f39cfeed90b8c6da9ac4b496d4c7e44ca66fb8589"

# model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b, tp:8
class TestAllreduceAddRmsnormEps1em6Tp8H4096(AllreduceAddRmsnormBase):
    name = "allreduce_add_rmsnorm_eps_1em6_tp8_h4096"
    axes = {"world_size": 8, "hidden_size": 4096}
    sha256 = "0b7a0ed62232f8c812490e7f7269da34b4b72322375b53e52ab5632d4365af7c"

class TestAllreduceAddRmsnormTp2H2048(AllreduceAddRmsnormBase):
    name = "allreduce_add_rmsnorm_tp2_h2048"  # model:qwen3-30b-a3b, tp:2
    axes = {"world_size": 2, "hidden_size": 2048}
    sha256 = "5f0f4db194c485b5ba7375f7cfe705133cb2d8e6a54051a67bb56838f349219a"

# model:deepseek-v3, model:deepseek-r1, tp:8
class TestAllreduceAddRmsnormTp8H7168(AllreduceAddRmsnormBase):
    name = "allreduce_add_rmsnorm_tp8_h7168"
    axes = {"world_size": 8, "hidden_size": 7168}
    sha256 = "8e23250502c91e7a6e1cf1588aa67d348c2c054d55bd0f0f6c00be9dbe39d1d5"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
