"""Reference tests of op_type cascade_merge.

Rendered: don't edit. `gen-tests --op-type cascade_merge` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
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
from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.cascade_merge.relations import merge_relations
from generator.ops.op_types.cascade_merge.states import states_of
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
# oracle: generator.ops.op_types.cascade_merge.states
# relations: generator.ops.op_types.cascade_merge.relations


def _merges_in_threads(axes: Mapping[str, int]) -> bool:
    """Return whether FlashInfer's kernel merges several parts in each of some threads.

    A block has 128 threads, which hold 8 values of 16 bits each, or a 32nd of a head.
    """
    of_a_head = axes["head_dim"] // max(8, axes["head_dim"] // 32)
    parts = axes.get("num_states", 2)
    return parts >= axes["seq_len"] and parts > 128 // of_a_head


_LSE = (
    "the exponentials and the logarithm of their sum are off by 2^-22 each, as exp2 and "
    "log2 of float32 are; s itself is up to 200 and rounds by 2^-24 of that"
)
TOLERANCES = (
    Override(
        "v_merged",
        Tolerance(rtol=4e-3, atol=1e-5, nmse=1.6e-5),
        "one rounding to bfloat16: half an ulp is 2^-8 of a value at most, and 2^-16 = "
        "1.53e-5 its square; before it, weights of parts whose s is 16 have 2^-22·16 of "
        "error, 4e-6, of values up to 5 that may cancel",
        source="oracle",
    ),
    Override(
        "v_merged",
        Tolerance(rtol=8e-3, atol=7.9e-3, nmse=1.6e-5),
        "where parts are as many as rows or more, FlashInfer's threads merge a few parts "
        "each and round what they have to bfloat16: at most 2^-7 of a value below 4, in a "
        "mean weighted by the threads' own sums; then both sides round once",
        source="flashinfer",
        where=_merges_in_threads,
    ),
    Override(
        "v_merged",
        Tolerance(rtol=8e-3, atol=2e-5, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        "2^-7 apart; weights differ by 4e-6 on both sides where s is 16",
    ),
    Override("s_merged", Tolerance(rtol=2.0**-21, atol=2e-6, nmse=1e-12), _LSE),
)


def cases(definition: Definition) -> list[Case]:
    """Return parts of like and of unlike weight, and parts without keys."""
    several = "num_states" in definition.interface.inputs.get("v", "")
    shapes: list[tuple[str, str, int, dict[str, Any]]] = [
        ("one-row", "small", 1, {"spread": 1.0}),
        ("odd-rows", "small", 7, {"spread": 3.0}),
        ("equal-parts", "small", 3, {"spread": 0.0}),
        ("far-apart", "small", 5, {"spread": 60.0}),
        ("large-lse", "small", 4, {"spread": 2.0, "mean": 150.0}),
        ("empty-parts", "small", 9, {"spread": 2.0, "empty": 3}),
        ("batch", "medium", 67, {"spread": 3.0}),
        *([("many-parts", "medium", 2, {"spread": 2.0})] if several else []),
        ("long-batch", "large", 2048, {"spread": 3.0}),
    ]
    counts = {"one-row": 2, "odd-rows": 5, "batch": 4, "many-parts": 13}
    limits = past_limits(
        "seq_len", 4_123, {"spread": 3.0}, **({"num_states": 9} if several else {})
    )
    return [
        Case(
            name,
            size,
            {"seq_len": rows}
            | ({"num_states": counts.get(name, 3)} if several else {}),
            params,
        )
        for name, size, rows, params in shapes
    ] + [limits]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return states: v of deviation 1, s around the case's mean by its spread.

    v bfloat16 [seq_len, (num_states,) num_heads, head_dim], s float32 [seq_len,
    (num_states,) num_heads]. In the first `empty` rows one part has no keys, in the next
    `empty` rows none has.
    """
    axes = {**definition.axes, **case.axes}
    rows, parts = axes["seq_len"], axes.get("num_states", 2)
    heads = (axes["num_heads"],)
    v = stream.child("v").values((rows, parts, *heads, axes["head_dim"]), 1.0)
    s = stream.child("s").values((rows, parts, *heads), case.params["spread"])
    s = s + case.params.get("mean", 5.0)
    empty = case.params.get("empty", 0)
    s[:empty, 0] = -math.inf
    s[empty : 2 * empty] = -math.inf
    # attention over no key is 0
    v = torch.where((s == -math.inf)[..., None], 0.0, v).to(torch.bfloat16)
    if "num_states" in axes:
        return {"v": v, "s": s}
    inputs = {"v_a": v[:, 0], "s_a": s[:, 0], "v_b": v[:, 1], "s_b": s[:, 1]}
    return {name: value.contiguous() for name, value in inputs.items()}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return merged values and LSE in float64, by softmax and logsumexp of s·ln 2."""
    v, s = states_of(inputs)
    natural = s.double() * math.log(2.0)
    total = torch.logsumexp(natural, dim=1)
    weights = torch.softmax(natural, dim=1).nan_to_num(0.0)
    merged = torch.einsum("nph,nphd->nhd", weights, v.double())
    return merged, total / math.log(2.0)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries of which some part has keys: bool [seq_len].

    For the others FlashInfer's kernels give not a number, or -5e4.
    """
    _, s = states_of(inputs)
    return (s > -math.inf).flatten(1).any(dim=1)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the one CUDA kernel there is."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call flashinfer.cascade: bfloat16 values, and the base-2 LSE in float32."""
    from flashinfer import cascade

    if "v" in inputs:
        return cascade.merge_states(inputs["v"], inputs["s"])
    return cascade.merge_state(*(inputs[n] for n in ("v_a", "s_a", "v_b", "s_b")))


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=merge_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)


# ---- the interfaces

INTERFACE_MERGE_STATE = Interface(
    inputs={
        "v_a": "bfloat16[seq_len, num_heads, head_dim]",
        "s_a": "float32[seq_len, num_heads]",
        "v_b": "bfloat16[seq_len, num_heads, head_dim]",
        "s_b": "float32[seq_len, num_heads]",
    },
    outputs={
        "v_merged": "bfloat16[seq_len, num_heads, head_dim]",
        "s_merged": "float32[seq_len, num_heads]",
    },
)
INTERFACE_MERGE_STATES = Interface(
    inputs={
        "v": "bfloat16[seq_len, num_states, num_heads, head_dim]",
        "s": "float32[seq_len, num_states, num_heads]",
    },
    outputs={
        "v_merged": "bfloat16[seq_len, num_heads, head_dim]",
        "s_merged": "float32[seq_len, num_heads]",
    },
)

# ---- the tests


class CascadeMergeTests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of cascade_merge share."""

    op_type = "cascade_merge"
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
# (1) one rounding to bfloat16.
# (2) where parts are as many as rows or more, FlashInfer's threads merge a few parts
# each and round what they have to bfloat16.
# (3) both sides round nearly the same float32 value once.
# (4) the exponentials and the logarithm of their sum are off by 2^-22 each, as exp2 and
# log2 of float32 are.


# Attention over two parts of the keys becomes attention over both: v = (2^s_a v_a +
# 2^s_b v_b) / 2^s with s = log2(2^s_a + 2^s_b). A part without keys has s = -inf and no
# weight; where no part has keys, v is 0 and s -inf. In float32; v is rounded once.
# fi_api:flashinfer.cascade.merge_state
# Tolerances:
#   output    source                    rtol      atol    NMSE     reason
#   v_merged  oracle                    0.004     1e-05   1.6e-05  (1)
#   v_merged  flashinfer of some sizes  0.008     0.0079  1.6e-05  (2)
#   v_merged  flashinfer                0.008     2e-05   1.6e-05  (3)
#   s_merged  oracle, flashinfer        4.77e-07  2e-06   1e-12    (4)
def reference_merge_state():
    import math

    import torch


    @torch.no_grad()
    def run(
        v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        peak = torch.maximum(s_a, s_b)
        # Where neither part has a key, both weights are 0 and not exp2(-inf + inf).
        peak = torch.where(peak == -math.inf, 0.0, peak)
        weight_a, weight_b = torch.exp2(s_a - peak), torch.exp2(s_b - peak)
        total = weight_a + weight_b
        merged = v_a.float() * weight_a[..., None] + v_b.float() * weight_b[..., None]
        merged = merged / torch.where(total > 0, total, 1.0)[..., None]
        return merged.to(v_a.dtype), torch.log2(total) + peak

    return run


class MergeStateBase(CascadeMergeTests):
    reference = staticmethod(reference_merge_state)
    interface = INTERFACE_MERGE_STATE

class TestMergeStateH16D256(MergeStateBase):
    name = "merge_state_h16_d256"  # model:gemma-2-9b, model:qwen3-next-80b-a3b
    axes = {"num_heads": 16, "head_dim": 256}
    sha256 = "9692a1dcd696ecc71a170bad3ad0261d1aa55c6dd5d910f39575ed5303d83dd2"

# model:llama-3.1-8b, model:qwen3-30b-a3b, model:mistral-7b-v0.1
class TestMergeStateH32D128(MergeStateBase):
    name = "merge_state_h32_d128"
    axes = {"num_heads": 32, "head_dim": 128}
    sha256 = "b1e73239b6e7311e93f1c451f0f9234a7f8b50f6fe9a1582251fc776d5361303"

class TestMergeStateH40D128(MergeStateBase):
    name = "merge_state_h40_d128"  # model:qwen3-14b, model:llama-4-scout
    axes = {"num_heads": 40, "head_dim": 128}
    sha256 = "dd8d99ce5bc4fac212f43eb030d1856434f1943cc85b17afbc33c1c0d385e390"

class TestMergeStateH64D128(MergeStateBase):
    name = "merge_state_h64_d128"  # model:llama-3.1-70b, model:qwen3-32b
    axes = {"num_heads": 64, "head_dim": 128}
    sha256 = "977f6fa0370058f2bc7dd189b0b80ef7b892c9d731b2eee7cc1a3888ad679994"

class TestMergeStateH64D64(MergeStateBase):
    name = "merge_state_h64_d64"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"num_heads": 64, "head_dim": 64}
    sha256 = "401b19f08dba2919a4ef7de65701a2d726fe547be547f420809c9cbab54e4100"


# Attention over several parts of the keys becomes attention over all: v = sum of 2^s_i
# v_i over 2^s, with s the log2 of the sum of 2^s_i. A part without keys has s = -inf
# and no weight; where no part has keys, v is 0 and s -inf. In float32; v is rounded
# once.
# fi_api:flashinfer.cascade.merge_states
# Tolerances: those of reference_merge_state.
def reference_merge_states():
    import math

    import torch


    @torch.no_grad()
    def run(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        peak = s.amax(dim=1, keepdim=True)
        # Where no part has a key, the weights are 0 and not exp2(-inf + inf).
        peak = torch.where(peak == -math.inf, 0.0, peak)
        weights = torch.exp2(s - peak)  # [seq_len, num_states, num_heads]
        total = weights.sum(dim=1)
        merged = (v.float() * weights[..., None]).sum(dim=1)
        merged = merged / torch.where(total > 0, total, 1.0)[..., None]
        return merged.to(v.dtype), torch.log2(total) + peak[:, 0]

    return run


class MergeStatesBase(CascadeMergeTests):
    reference = staticmethod(reference_merge_states)
    interface = INTERFACE_MERGE_STATES

class TestMergeStatesH16D256(MergeStatesBase):
    name = "merge_states_h16_d256"  # model:gemma-2-9b, model:qwen3-next-80b-a3b
    axes = {"num_heads": 16, "head_dim": 256}
    sha256 = "d4f9242fd00e2b023fde1f9e86c15741866042cfa674db86ecf79ef72049c78a"

# model:llama-3.1-8b, model:qwen3-30b-a3b, model:mistral-7b-v0.1
class TestMergeStatesH32D128(MergeStatesBase):
    name = "merge_states_h32_d128"
    axes = {"num_heads": 32, "head_dim": 128}
    sha256 = "705e53075354eef8d87cd0263be60fdb3cef20a4a3c90dcf46e38ff014f2a507"

class TestMergeStatesH40D128(MergeStatesBase):
    name = "merge_states_h40_d128"  # model:qwen3-14b, model:llama-4-scout
    axes = {"num_heads": 40, "head_dim": 128}
    sha256 = "605d4a8b37455ff90df966b2e8bd3da9b3f39d267a766767dfccc330bbb60125"

class TestMergeStatesH64D128(MergeStatesBase):
    name = "merge_states_h64_d128"  # model:llama-3.1-70b, model:qwen3-32b
    axes = {"num_heads": 64, "head_dim": 128}
    sha256 = "d7615aacb3f10d29461f6f0be0224d9534974873b626f9f1c261c25cc7e5d855"

class TestMergeStatesH64D64(MergeStatesBase):
    name = "merge_states_h64_d64"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"num_heads": 64, "head_dim": 64}
    sha256 = "de89a83425d32bd45d8496c12de0d150b5c3219067df3c6e2f9558e973d1c518"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
