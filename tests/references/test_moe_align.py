"""Reference tests of op_type moe_align.

Rendered: don't edit. `gen-tests --op-type moe_align` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- SGLang's layers, live, in a process of their own
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

import sys
from typing import Any

import torch

from generator.ops.op_types.moe_align.order import SortedByExpert
from generator.ops.op_types.moe_align.relations import align_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# policies: generator.ops.op_types.moe_align.order
# relations: generator.ops.op_types.moe_align.relations

TOLERANCES: tuple[Override, ...] = ()
POLICIES = {"sorted_token_ids": SortedByExpert()}
# the name of a case: its size, tokens, how experts are drawn
_CASES = {
    "one-token": ("small", 1, "even"),
    "odd-tokens": ("small", 7, "even"),
    "whole-blocks": ("small", 0, "same"),
    "one-expert": ("small", 5, "same"),
    "last-expert": ("small", 3, "last"),
    "none-here": ("small", 3, "elsewhere"),
    "some-elsewhere": ("small", 9, "shard"),
    "ids-outside": ("small", 9, "outside"),
    "ids-at-the-edges": ("small", 7, "edges"),
    "skewed": ("medium", 131, "skewed"),
    "past-limits": (LIMITS, 4_157, "shard"),
    "prefill": ("large", 8_192, "skewed"),
}


def axes_of(definition: Definition, tokens: int) -> dict[str, int]:
    """Return the variable axes of a batch."""
    experts, block = (
        definition.constants["num_experts"],
        definition.constants["block_size"],
    )
    places = tokens * definition.axes["topk"] + (experts + 1) * (block - 1)
    blocks = -(-places // block)
    return {"num_tokens": tokens, "num_places": places, "num_blocks": blocks}


def cases(definition: Definition) -> list[Case]:
    """Return even and skewed loads, whole blocks, experts elsewhere and ids outside."""
    block = definition.constants["block_size"]
    usual = [
        # as many pairs as fill two blocks: the next expert begins right behind
        Case(name, size, axes_of(definition, tokens or 2 * block), {"kind": kind})
        for name, (size, tokens, kind) in _CASES.items()
    ]
    each = (axes_of(definition, tokens) for tokens in range(1, block + 1))
    full = [axes for axes in each if axes["num_places"] % block in (0, block - 1)]
    return [*usual, *(Case("last-block-full", "small", axes) for axes in full[:1])]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return topk_ids int32 [num_tokens, topk]; a token's experts differ where they can."""
    experts, top_k = definition.constants["num_experts"], definition.axes["topk"]
    tokens, kind = case.axes["num_tokens"], case.params.get("kind", "even")
    rows = []
    for token in range(tokens):
        order = stream.child(f"token {token}").permutation(experts)[:top_k]
        if kind == "skewed":
            order = (order * order) // max(experts, 1)
        rows.append(order)
    ids = torch.stack(rows)
    if kind == "same":
        ids = torch.arange(top_k).expand(tokens, top_k) % experts
    elif kind == "last":
        ids = torch.full_like(ids, experts - 1)
    elif kind == "elsewhere":
        ids = torch.full_like(ids, -1)
    elif kind == "shard":
        ids = torch.where(ids % 3 == 1, ids, -1)
    elif kind == "edges":
        # just outside on either side, and just inside
        edges = torch.tensor([experts, -2, experts - 1, 0, experts + 1, -1, 1])
        ids = edges[torch.arange(ids.numel()) % len(edges)].view(ids.shape)
    elif kind == "outside":
        ids = ids + torch.tensor([0, experts, -experts - 2])[ids % 3]
    return {"topk_ids": ids.to(torch.int32).contiguous()}


def oracle(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return places, each block's expert and the places that are used, int32, by lists."""
    experts, block = (
        definition.constants["num_experts"],
        definition.constants["block_size"],
    )
    pairs = inputs["topk_ids"].flatten().tolist()
    lists: list[list[int]] = [[] for _ in range(-1, experts)]
    for pair, expert in enumerate(pairs):
        lists[expert + 1 if 0 <= expert < experts else 0].append(pair)
    places: list[int] = []
    owners: list[int] = []
    for expert, members in enumerate(lists, -1):
        members += [len(pairs)] * (-len(members) % block)
        places += members
        owners += [expert] * (len(members) // block)
    used = len(places)
    axes = axes_of(definition, len(inputs["topk_ids"]))
    places += [len(pairs)] * (axes["num_places"] - used)
    owners += [-1] * (axes["num_blocks"] - len(owners))
    each = (places, owners, [used])
    return tuple(torch.tensor(value, dtype=torch.int32) for value in each)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's CUDA kernel, which it compiles."""
    return (Backend("jit", needs=("tvm_ffi",)),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, ...]:
    """Return what the kernel writes; it fills what is not used, as the definition does."""
    from sglang.kernels.ops.moe.moe_align import moe_align_block_size

    ids, experts = inputs["topk_ids"], definition.constants["num_experts"]
    axes = axes_of(definition, len(ids))
    sizes = (axes["num_places"], axes["num_blocks"], 1, experts + 2)
    places, owners, used, scratch = (
        torch.empty(size, dtype=torch.int32, device=ids.device) for size in sizes
    )
    moe_align_block_size(
        ids,
        experts + 1,
        definition.constants["block_size"],
        places,
        owners,
        used,
        scratch,
        True,
        map_invalid_experts_to_sentinel=True,
        pad_expert_ids=True,
    )
    return places, owners, used


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    policies=POLICIES,
    relations=align_relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)


# ---- the interfaces

INTERFACE_MOE_ALIGN_BLOCK_SIZE_E128_BS16 = Interface(
    inputs={"topk_ids": "int32[num_tokens, topk]"},
    outputs={
        "sorted_token_ids": "int32[num_places]",
        "expert_ids": "int32[num_blocks]",
        "num_tokens_post_pad": "int32[one]",
    },
    constraints=(
        "one == 1",
        "num_places == num_tokens * topk + 1935",
        "num_blocks == (num_places + 15) // 16",
    ),
)
INTERFACE_MOE_ALIGN_BLOCK_SIZE_E128_K8_BS64 = Interface(
    inputs={"topk_ids": "int32[num_tokens, topk]"},
    outputs={
        "sorted_token_ids": "int32[num_places]",
        "expert_ids": "int32[num_blocks]",
        "num_tokens_post_pad": "int32[one]",
    },
    constraints=(
        "one == 1",
        "num_places == num_tokens * topk + 8127",
        "num_blocks == (num_places + 63) // 64",
    ),
)
INTERFACE_MOE_ALIGN_BLOCK_SIZE_E160_K8_BS64 = Interface(
    inputs={"topk_ids": "int32[num_tokens, topk]"},
    outputs={
        "sorted_token_ids": "int32[num_places]",
        "expert_ids": "int32[num_blocks]",
        "num_tokens_post_pad": "int32[one]",
    },
    constraints=(
        "one == 1",
        "num_places == num_tokens * topk + 10143",
        "num_blocks == (num_places + 63) // 64",
    ),
)
INTERFACE_MOE_ALIGN_BLOCK_SIZE_E256_K8_BS128 = Interface(
    inputs={"topk_ids": "int32[num_tokens, topk]"},
    outputs={
        "sorted_token_ids": "int32[num_places]",
        "expert_ids": "int32[num_blocks]",
        "num_tokens_post_pad": "int32[one]",
    },
    constraints=(
        "one == 1",
        "num_places == num_tokens * topk + 32639",
        "num_blocks == (num_places + 127) // 128",
    ),
)
INTERFACE_MOE_ALIGN_BLOCK_SIZE_E256_K8_BS16 = Interface(
    inputs={"topk_ids": "int32[num_tokens, topk]"},
    outputs={
        "sorted_token_ids": "int32[num_places]",
        "expert_ids": "int32[num_blocks]",
        "num_tokens_post_pad": "int32[one]",
    },
    constraints=(
        "one == 1",
        "num_places == num_tokens * topk + 3855",
        "num_blocks == (num_places + 15) // 16",
    ),
)
INTERFACE_MOE_ALIGN_BLOCK_SIZE_E256_K8_BS64 = Interface(
    inputs={"topk_ids": "int32[num_tokens, topk]"},
    outputs={
        "sorted_token_ids": "int32[num_places]",
        "expert_ids": "int32[num_blocks]",
        "num_tokens_post_pad": "int32[one]",
    },
    constraints=(
        "one == 1",
        "num_places == num_tokens * topk + 16191",
        "num_blocks == (num_places + 63) // 64",
    ),
)
INTERFACE_MOE_ALIGN_BLOCK_SIZE_E32_K4_BS64 = Interface(
    inputs={"topk_ids": "int32[num_tokens, topk]"},
    outputs={
        "sorted_token_ids": "int32[num_places]",
        "expert_ids": "int32[num_blocks]",
        "num_tokens_post_pad": "int32[one]",
    },
    constraints=(
        "one == 1",
        "num_places == num_tokens * topk + 2079",
        "num_blocks == (num_places + 63) // 64",
    ),
)
INTERFACE_MOE_ALIGN_BLOCK_SIZE_E384_K8_BS64 = Interface(
    inputs={"topk_ids": "int32[num_tokens, topk]"},
    outputs={
        "sorted_token_ids": "int32[num_places]",
        "expert_ids": "int32[num_blocks]",
        "num_tokens_post_pad": "int32[one]",
    },
    constraints=(
        "one == 1",
        "num_places == num_tokens * topk + 24255",
        "num_blocks == (num_places + 63) // 64",
    ),
)
INTERFACE_MOE_ALIGN_BLOCK_SIZE_E512_K10_BS16 = Interface(
    inputs={"topk_ids": "int32[num_tokens, topk]"},
    outputs={
        "sorted_token_ids": "int32[num_places]",
        "expert_ids": "int32[num_blocks]",
        "num_tokens_post_pad": "int32[one]",
    },
    constraints=(
        "one == 1",
        "num_places == num_tokens * topk + 7695",
        "num_blocks == (num_places + 15) // 16",
    ),
)
INTERFACE_MOE_ALIGN_BLOCK_SIZE_E8_K2_BS16 = Interface(
    inputs={"topk_ids": "int32[num_tokens, topk]"},
    outputs={
        "sorted_token_ids": "int32[num_places]",
        "expert_ids": "int32[num_blocks]",
        "num_tokens_post_pad": "int32[one]",
    },
    constraints=(
        "one == 1",
        "num_places == num_tokens * topk + 135",
        "num_blocks == (num_places + 15) // 16",
    ),
)

# ---- the tests


class MoeAlignTests(GroundTruthsAgree, matches("sglang"), MatchesRecorded, Metamorphic):
    """What the tests of moe_align share."""

    op_type = "moe_align"
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
# (1) sorted_token_ids are right where each expert's blocks have its tokens, in any
# order (generator.ops.op_types.moe_align.order).


# Puts pairs of token and expert in order by expert, so that each block of 16 places is
# of one expert. Pair p is of token p // topk. First come blocks of the pairs whose id
# is none of 0 to 127: experts of other devices. Places without a pair hold the number
# of pairs, and blocks behind the last one, as those first ones, the expert -1. The
# order within an expert is free.
# Tolerances:
#   output               source          rtol   atol            NMSE  reason
#   expert_ids           oracle, sglang  exact
#   num_tokens_post_pad  oracle, sglang  exact
#   sorted_token_ids     every source    by     SortedByExpert        (1)
def reference_moe_align_block_size_e128_bs16():
    import torch

    NUM_EXPERTS = 128
    BLOCK_SIZE = 16


    @torch.no_grad()
    def run(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        device = topk_ids.device
        experts = topk_ids.flatten().long()
        pairs = len(experts)
        # Bucket 0 has the pairs of experts that are not here.
        is_here = (experts >= 0) & (experts < NUM_EXPERTS)
        buckets = torch.where(is_here, experts + 1, 0)
        counts = torch.zeros(NUM_EXPERTS + 1, dtype=torch.int64, device=device)
        counts.scatter_add_(0, buckets, torch.ones_like(buckets))
        lengths = (counts + BLOCK_SIZE - 1) // BLOCK_SIZE * BLOCK_SIZE
        ends = lengths.cumsum(0)

        numbers = torch.arange(pairs, device=device)
        # The order within an expert is free.
        order = buckets.argsort()
        sorted_buckets = buckets[order]
        ranks = numbers - (counts.cumsum(0) - counts)[sorted_buckets]
        places = (ends - lengths)[sorted_buckets] + ranks
        num_places = pairs + (NUM_EXPERTS + 1) * (BLOCK_SIZE - 1)
        # A place without a pair holds the number of pairs.
        sorted_token_ids = torch.full(
            (num_places,), pairs, dtype=torch.int32, device=device
        )
        sorted_token_ids[places] = order.int()

        num_blocks = (num_places + BLOCK_SIZE - 1) // BLOCK_SIZE
        starts = torch.arange(num_blocks, device=device) * BLOCK_SIZE
        owners = torch.searchsorted(ends, starts, right=True) - 1
        expert_ids = torch.where(starts < ends[-1], owners, -1).int()
        return sorted_token_ids, expert_ids, ends[-1:].int()

    return run


class MoeAlignBlockSizeE128Bs16Base(MoeAlignTests):
    reference = staticmethod(reference_moe_align_block_size_e128_bs16)
    interface = INTERFACE_MOE_ALIGN_BLOCK_SIZE_E128_BS16
    axes = {"one": 1}
    constants = ("num_experts", "block_size")
    NUM_EXPERTS = 128  # "e128" in the name
    BLOCK_SIZE = 16  # "bs16" in the name

class TestMoeAlignBlockSizeE128K4Bs16(MoeAlignBlockSizeE128Bs16Base):
    name = "moe_align_block_size_e128_k4_bs16"  # model:gpt-oss-120b
    axes = {"topk": 4}
    sha256 = "ad38870e4c1479c17ee9e48749c68bda781fee0a8405466a7374edf439f176cc"

# model:qwen3-30b-a3b, model:qwen3-235b-a22b
class TestMoeAlignBlockSizeE128K8Bs16(MoeAlignBlockSizeE128Bs16Base):
    name = "moe_align_block_size_e128_k8_bs16"
    axes = {"topk": 8}
    sha256 = "ea12621a5f5e8ddd4949694e141c7b9da90a22d2095684983e914af9cff92c69"


# Puts pairs of token and expert in order by expert, so that each block of 64 places is
# of one expert. Pair p is of token p // 8. First come blocks of the pairs whose id is
# none of 0 to 127: experts of other devices. Places without a pair hold the number of
# pairs, and blocks behind the last one, as those first ones, the expert -1. The order
# within an expert is free.
# model:qwen3-30b-a3b, model:qwen3-235b-a22b
# Tolerances: those of reference_moe_align_block_size_e128_bs16.
def reference_moe_align_block_size_e128_k8_bs64():
    import torch

    NUM_EXPERTS = 128
    BLOCK_SIZE = 64


    @torch.no_grad()
    def run(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        device = topk_ids.device
        experts = topk_ids.flatten().long()
        pairs = len(experts)
        # Bucket 0 has the pairs of experts that are not here.
        is_here = (experts >= 0) & (experts < NUM_EXPERTS)
        buckets = torch.where(is_here, experts + 1, 0)
        counts = torch.zeros(NUM_EXPERTS + 1, dtype=torch.int64, device=device)
        counts.scatter_add_(0, buckets, torch.ones_like(buckets))
        lengths = (counts + BLOCK_SIZE - 1) // BLOCK_SIZE * BLOCK_SIZE
        ends = lengths.cumsum(0)

        numbers = torch.arange(pairs, device=device)
        # The order within an expert is free.
        order = buckets.argsort()
        sorted_buckets = buckets[order]
        ranks = numbers - (counts.cumsum(0) - counts)[sorted_buckets]
        places = (ends - lengths)[sorted_buckets] + ranks
        num_places = pairs + (NUM_EXPERTS + 1) * (BLOCK_SIZE - 1)
        # A place without a pair holds the number of pairs.
        sorted_token_ids = torch.full(
            (num_places,), pairs, dtype=torch.int32, device=device
        )
        sorted_token_ids[places] = order.int()

        num_blocks = (num_places + BLOCK_SIZE - 1) // BLOCK_SIZE
        starts = torch.arange(num_blocks, device=device) * BLOCK_SIZE
        owners = torch.searchsorted(ends, starts, right=True) - 1
        expert_ids = torch.where(starts < ends[-1], owners, -1).int()
        return sorted_token_ids, expert_ids, ends[-1:].int()

    return run


class TestMoeAlignBlockSizeE128K8Bs64(MoeAlignTests):
    name = "moe_align_block_size_e128_k8_bs64"
    reference = staticmethod(reference_moe_align_block_size_e128_k8_bs64)
    interface = INTERFACE_MOE_ALIGN_BLOCK_SIZE_E128_K8_BS64
    axes = {"topk": 8, "one": 1}
    constants = ("num_experts", "block_size")
    NUM_EXPERTS = 128  # "e128" in the name
    BLOCK_SIZE = 64  # "bs64" in the name
    sha256 = "df65455d1eadcf81a9d7ca089c5680dceaed2b8e838a3445fbdff8b463ee63ff"


# Puts pairs of token and expert in order by expert, so that each block of 64 places is
# of one expert. Pair p is of token p // 8. First come blocks of the pairs whose id is
# none of 0 to 159: experts of other devices. Places without a pair hold the number of
# pairs, and blocks behind the last one, as those first ones, the expert -1. The order
# within an expert is free.
# model:glm-4.6
# Tolerances: those of reference_moe_align_block_size_e128_bs16.
def reference_moe_align_block_size_e160_k8_bs64():
    import torch

    NUM_EXPERTS = 160
    BLOCK_SIZE = 64


    @torch.no_grad()
    def run(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        device = topk_ids.device
        experts = topk_ids.flatten().long()
        pairs = len(experts)
        # Bucket 0 has the pairs of experts that are not here.
        is_here = (experts >= 0) & (experts < NUM_EXPERTS)
        buckets = torch.where(is_here, experts + 1, 0)
        counts = torch.zeros(NUM_EXPERTS + 1, dtype=torch.int64, device=device)
        counts.scatter_add_(0, buckets, torch.ones_like(buckets))
        lengths = (counts + BLOCK_SIZE - 1) // BLOCK_SIZE * BLOCK_SIZE
        ends = lengths.cumsum(0)

        numbers = torch.arange(pairs, device=device)
        # The order within an expert is free.
        order = buckets.argsort()
        sorted_buckets = buckets[order]
        ranks = numbers - (counts.cumsum(0) - counts)[sorted_buckets]
        places = (ends - lengths)[sorted_buckets] + ranks
        num_places = pairs + (NUM_EXPERTS + 1) * (BLOCK_SIZE - 1)
        # A place without a pair holds the number of pairs.
        sorted_token_ids = torch.full(
            (num_places,), pairs, dtype=torch.int32, device=device
        )
        sorted_token_ids[places] = order.int()

        num_blocks = (num_places + BLOCK_SIZE - 1) // BLOCK_SIZE
        starts = torch.arange(num_blocks, device=device) * BLOCK_SIZE
        owners = torch.searchsorted(ends, starts, right=True) - 1
        expert_ids = torch.where(starts < ends[-1], owners, -1).int()
        return sorted_token_ids, expert_ids, ends[-1:].int()

    return run


class TestMoeAlignBlockSizeE160K8Bs64(MoeAlignTests):
    name = "moe_align_block_size_e160_k8_bs64"
    reference = staticmethod(reference_moe_align_block_size_e160_k8_bs64)
    interface = INTERFACE_MOE_ALIGN_BLOCK_SIZE_E160_K8_BS64
    axes = {"topk": 8, "one": 1}
    constants = ("num_experts", "block_size")
    NUM_EXPERTS = 160  # "e160" in the name
    BLOCK_SIZE = 64  # "bs64" in the name
    sha256 = "9c966f603ef355968caf0d68ec3c83dd33a71cfb97ec4e65f75f17ac566f6731"


# Puts pairs of token and expert in order by expert, so that each block of 128 places is
# of one expert. Pair p is of token p // 8. First come blocks of the pairs whose id is
# none of 0 to 255: experts of other devices. Places without a pair hold the number of
# pairs, and blocks behind the last one, as those first ones, the expert -1. The order
# within an expert is free.
# model:deepseek-v3, model:deepseek-r1
# Tolerances: those of reference_moe_align_block_size_e128_bs16.
def reference_moe_align_block_size_e256_k8_bs128():
    import torch

    NUM_EXPERTS = 256
    BLOCK_SIZE = 128


    @torch.no_grad()
    def run(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        device = topk_ids.device
        experts = topk_ids.flatten().long()
        pairs = len(experts)
        # Bucket 0 has the pairs of experts that are not here.
        is_here = (experts >= 0) & (experts < NUM_EXPERTS)
        buckets = torch.where(is_here, experts + 1, 0)
        counts = torch.zeros(NUM_EXPERTS + 1, dtype=torch.int64, device=device)
        counts.scatter_add_(0, buckets, torch.ones_like(buckets))
        lengths = (counts + BLOCK_SIZE - 1) // BLOCK_SIZE * BLOCK_SIZE
        ends = lengths.cumsum(0)

        numbers = torch.arange(pairs, device=device)
        # The order within an expert is free.
        order = buckets.argsort()
        sorted_buckets = buckets[order]
        ranks = numbers - (counts.cumsum(0) - counts)[sorted_buckets]
        places = (ends - lengths)[sorted_buckets] + ranks
        num_places = pairs + (NUM_EXPERTS + 1) * (BLOCK_SIZE - 1)
        # A place without a pair holds the number of pairs.
        sorted_token_ids = torch.full(
            (num_places,), pairs, dtype=torch.int32, device=device
        )
        sorted_token_ids[places] = order.int()

        num_blocks = (num_places + BLOCK_SIZE - 1) // BLOCK_SIZE
        starts = torch.arange(num_blocks, device=device) * BLOCK_SIZE
        owners = torch.searchsorted(ends, starts, right=True) - 1
        expert_ids = torch.where(starts < ends[-1], owners, -1).int()
        return sorted_token_ids, expert_ids, ends[-1:].int()

    return run


class TestMoeAlignBlockSizeE256K8Bs128(MoeAlignTests):
    name = "moe_align_block_size_e256_k8_bs128"
    reference = staticmethod(reference_moe_align_block_size_e256_k8_bs128)
    interface = INTERFACE_MOE_ALIGN_BLOCK_SIZE_E256_K8_BS128
    axes = {"topk": 8, "one": 1}
    constants = ("num_experts", "block_size")
    NUM_EXPERTS = 256  # "e256" in the name
    BLOCK_SIZE = 128  # "bs128" in the name
    sha256 = "57b8d9f7301311ca5b61ea491402fb4854848fb26a209042b413370d0c526e8d"


# Puts pairs of token and expert in order by expert, so that each block of 16 places is
# of one expert. Pair p is of token p // 8. First come blocks of the pairs whose id is
# none of 0 to 255: experts of other devices. Places without a pair hold the number of
# pairs, and blocks behind the last one, as those first ones, the expert -1. The order
# within an expert is free.
# model:deepseek-v3, model:deepseek-r1
# Tolerances: those of reference_moe_align_block_size_e128_bs16.
def reference_moe_align_block_size_e256_k8_bs16():
    import torch

    NUM_EXPERTS = 256
    BLOCK_SIZE = 16


    @torch.no_grad()
    def run(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        device = topk_ids.device
        experts = topk_ids.flatten().long()
        pairs = len(experts)
        # Bucket 0 has the pairs of experts that are not here.
        is_here = (experts >= 0) & (experts < NUM_EXPERTS)
        buckets = torch.where(is_here, experts + 1, 0)
        counts = torch.zeros(NUM_EXPERTS + 1, dtype=torch.int64, device=device)
        counts.scatter_add_(0, buckets, torch.ones_like(buckets))
        lengths = (counts + BLOCK_SIZE - 1) // BLOCK_SIZE * BLOCK_SIZE
        ends = lengths.cumsum(0)

        numbers = torch.arange(pairs, device=device)
        # The order within an expert is free.
        order = buckets.argsort()
        sorted_buckets = buckets[order]
        ranks = numbers - (counts.cumsum(0) - counts)[sorted_buckets]
        places = (ends - lengths)[sorted_buckets] + ranks
        num_places = pairs + (NUM_EXPERTS + 1) * (BLOCK_SIZE - 1)
        # A place without a pair holds the number of pairs.
        sorted_token_ids = torch.full(
            (num_places,), pairs, dtype=torch.int32, device=device
        )
        sorted_token_ids[places] = order.int()

        num_blocks = (num_places + BLOCK_SIZE - 1) // BLOCK_SIZE
        starts = torch.arange(num_blocks, device=device) * BLOCK_SIZE
        owners = torch.searchsorted(ends, starts, right=True) - 1
        expert_ids = torch.where(starts < ends[-1], owners, -1).int()
        return sorted_token_ids, expert_ids, ends[-1:].int()

    return run


class TestMoeAlignBlockSizeE256K8Bs16(MoeAlignTests):
    name = "moe_align_block_size_e256_k8_bs16"
    reference = staticmethod(reference_moe_align_block_size_e256_k8_bs16)
    interface = INTERFACE_MOE_ALIGN_BLOCK_SIZE_E256_K8_BS16
    axes = {"topk": 8, "one": 1}
    constants = ("num_experts", "block_size")
    NUM_EXPERTS = 256  # "e256" in the name
    BLOCK_SIZE = 16  # "bs16" in the name
    sha256 = "062e807e5099d755a0a0b00997c6169a70374f906a5ad438568c28d6eafc8b74"


# Puts pairs of token and expert in order by expert, so that each block of 64 places is
# of one expert. Pair p is of token p // 8. First come blocks of the pairs whose id is
# none of 0 to 255: experts of other devices. Places without a pair hold the number of
# pairs, and blocks behind the last one, as those first ones, the expert -1. The order
# within an expert is free.
# model:deepseek-v3, model:deepseek-r1, model:minimax-m2
# Tolerances: those of reference_moe_align_block_size_e128_bs16.
def reference_moe_align_block_size_e256_k8_bs64():
    import torch

    NUM_EXPERTS = 256
    BLOCK_SIZE = 64


    @torch.no_grad()
    def run(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        device = topk_ids.device
        experts = topk_ids.flatten().long()
        pairs = len(experts)
        # Bucket 0 has the pairs of experts that are not here.
        is_here = (experts >= 0) & (experts < NUM_EXPERTS)
        buckets = torch.where(is_here, experts + 1, 0)
        counts = torch.zeros(NUM_EXPERTS + 1, dtype=torch.int64, device=device)
        counts.scatter_add_(0, buckets, torch.ones_like(buckets))
        lengths = (counts + BLOCK_SIZE - 1) // BLOCK_SIZE * BLOCK_SIZE
        ends = lengths.cumsum(0)

        numbers = torch.arange(pairs, device=device)
        # The order within an expert is free.
        order = buckets.argsort()
        sorted_buckets = buckets[order]
        ranks = numbers - (counts.cumsum(0) - counts)[sorted_buckets]
        places = (ends - lengths)[sorted_buckets] + ranks
        num_places = pairs + (NUM_EXPERTS + 1) * (BLOCK_SIZE - 1)
        # A place without a pair holds the number of pairs.
        sorted_token_ids = torch.full(
            (num_places,), pairs, dtype=torch.int32, device=device
        )
        sorted_token_ids[places] = order.int()

        num_blocks = (num_places + BLOCK_SIZE - 1) // BLOCK_SIZE
        starts = torch.arange(num_blocks, device=device) * BLOCK_SIZE
        owners = torch.searchsorted(ends, starts, right=True) - 1
        expert_ids = torch.where(starts < ends[-1], owners, -1).int()
        return sorted_token_ids, expert_ids, ends[-1:].int()

    return run


class TestMoeAlignBlockSizeE256K8Bs64(MoeAlignTests):
    name = "moe_align_block_size_e256_k8_bs64"
    reference = staticmethod(reference_moe_align_block_size_e256_k8_bs64)
    interface = INTERFACE_MOE_ALIGN_BLOCK_SIZE_E256_K8_BS64
    axes = {"topk": 8, "one": 1}
    constants = ("num_experts", "block_size")
    NUM_EXPERTS = 256  # "e256" in the name
    BLOCK_SIZE = 64  # "bs64" in the name
    sha256 = "6dc9af64d27b7d51ac1f91c5cb11487ff7bab13e6e480d168f5c6d15315b3376"


# Puts pairs of token and expert in order by expert, so that each block of 64 places is
# of one expert. Pair p is of token p // 4. First come blocks of the pairs whose id is
# none of 0 to 31: experts of other devices. Places without a pair hold the number of
# pairs, and blocks behind the last one, as those first ones, the expert -1. The order
# within an expert is free.
# model:gpt-oss-20b
# Tolerances: those of reference_moe_align_block_size_e128_bs16.
def reference_moe_align_block_size_e32_k4_bs64():
    import torch

    NUM_EXPERTS = 32
    BLOCK_SIZE = 64


    @torch.no_grad()
    def run(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        device = topk_ids.device
        experts = topk_ids.flatten().long()
        pairs = len(experts)
        # Bucket 0 has the pairs of experts that are not here.
        is_here = (experts >= 0) & (experts < NUM_EXPERTS)
        buckets = torch.where(is_here, experts + 1, 0)
        counts = torch.zeros(NUM_EXPERTS + 1, dtype=torch.int64, device=device)
        counts.scatter_add_(0, buckets, torch.ones_like(buckets))
        lengths = (counts + BLOCK_SIZE - 1) // BLOCK_SIZE * BLOCK_SIZE
        ends = lengths.cumsum(0)

        numbers = torch.arange(pairs, device=device)
        # The order within an expert is free.
        order = buckets.argsort()
        sorted_buckets = buckets[order]
        ranks = numbers - (counts.cumsum(0) - counts)[sorted_buckets]
        places = (ends - lengths)[sorted_buckets] + ranks
        num_places = pairs + (NUM_EXPERTS + 1) * (BLOCK_SIZE - 1)
        # A place without a pair holds the number of pairs.
        sorted_token_ids = torch.full(
            (num_places,), pairs, dtype=torch.int32, device=device
        )
        sorted_token_ids[places] = order.int()

        num_blocks = (num_places + BLOCK_SIZE - 1) // BLOCK_SIZE
        starts = torch.arange(num_blocks, device=device) * BLOCK_SIZE
        owners = torch.searchsorted(ends, starts, right=True) - 1
        expert_ids = torch.where(starts < ends[-1], owners, -1).int()
        return sorted_token_ids, expert_ids, ends[-1:].int()

    return run


class TestMoeAlignBlockSizeE32K4Bs64(MoeAlignTests):
    name = "moe_align_block_size_e32_k4_bs64"
    reference = staticmethod(reference_moe_align_block_size_e32_k4_bs64)
    interface = INTERFACE_MOE_ALIGN_BLOCK_SIZE_E32_K4_BS64
    axes = {"topk": 4, "one": 1}
    constants = ("num_experts", "block_size")
    NUM_EXPERTS = 32  # "e32" in the name
    BLOCK_SIZE = 64  # "bs64" in the name
    sha256 = "babdccca3c1cf8c2ab2da634fb0c6d9fe3546264c82e2bf151b5cb1575f0d681"


# Puts pairs of token and expert in order by expert, so that each block of 64 places is
# of one expert. Pair p is of token p // 8. First come blocks of the pairs whose id is
# none of 0 to 383: experts of other devices. Places without a pair hold the number of
# pairs, and blocks behind the last one, as those first ones, the expert -1. The order
# within an expert is free.
# model:kimi-k2
# Tolerances: those of reference_moe_align_block_size_e128_bs16.
def reference_moe_align_block_size_e384_k8_bs64():
    import torch

    NUM_EXPERTS = 384
    BLOCK_SIZE = 64


    @torch.no_grad()
    def run(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        device = topk_ids.device
        experts = topk_ids.flatten().long()
        pairs = len(experts)
        # Bucket 0 has the pairs of experts that are not here.
        is_here = (experts >= 0) & (experts < NUM_EXPERTS)
        buckets = torch.where(is_here, experts + 1, 0)
        counts = torch.zeros(NUM_EXPERTS + 1, dtype=torch.int64, device=device)
        counts.scatter_add_(0, buckets, torch.ones_like(buckets))
        lengths = (counts + BLOCK_SIZE - 1) // BLOCK_SIZE * BLOCK_SIZE
        ends = lengths.cumsum(0)

        numbers = torch.arange(pairs, device=device)
        # The order within an expert is free.
        order = buckets.argsort()
        sorted_buckets = buckets[order]
        ranks = numbers - (counts.cumsum(0) - counts)[sorted_buckets]
        places = (ends - lengths)[sorted_buckets] + ranks
        num_places = pairs + (NUM_EXPERTS + 1) * (BLOCK_SIZE - 1)
        # A place without a pair holds the number of pairs.
        sorted_token_ids = torch.full(
            (num_places,), pairs, dtype=torch.int32, device=device
        )
        sorted_token_ids[places] = order.int()

        num_blocks = (num_places + BLOCK_SIZE - 1) // BLOCK_SIZE
        starts = torch.arange(num_blocks, device=device) * BLOCK_SIZE
        owners = torch.searchsorted(ends, starts, right=True) - 1
        expert_ids = torch.where(starts < ends[-1], owners, -1).int()
        return sorted_token_ids, expert_ids, ends[-1:].int()

    return run


class TestMoeAlignBlockSizeE384K8Bs64(MoeAlignTests):
    name = "moe_align_block_size_e384_k8_bs64"
    reference = staticmethod(reference_moe_align_block_size_e384_k8_bs64)
    interface = INTERFACE_MOE_ALIGN_BLOCK_SIZE_E384_K8_BS64
    axes = {"topk": 8, "one": 1}
    constants = ("num_experts", "block_size")
    NUM_EXPERTS = 384  # "e384" in the name
    BLOCK_SIZE = 64  # "bs64" in the name
    sha256 = "406ae51429c2d6fae4e8a0b4b837965aed30c8a4a9d3a623ff85d9ae79ee6b8b"


# Puts pairs of token and expert in order by expert, so that each block of 16 places is
# of one expert. Pair p is of token p // 10. First come blocks of the pairs whose id is
# none of 0 to 511: experts of other devices. Places without a pair hold the number of
# pairs, and blocks behind the last one, as those first ones, the expert -1. The order
# within an expert is free.
# model:qwen3-next-80b-a3b
# Tolerances: those of reference_moe_align_block_size_e128_bs16.
def reference_moe_align_block_size_e512_k10_bs16():
    import torch

    NUM_EXPERTS = 512
    BLOCK_SIZE = 16


    @torch.no_grad()
    def run(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        device = topk_ids.device
        experts = topk_ids.flatten().long()
        pairs = len(experts)
        # Bucket 0 has the pairs of experts that are not here.
        is_here = (experts >= 0) & (experts < NUM_EXPERTS)
        buckets = torch.where(is_here, experts + 1, 0)
        counts = torch.zeros(NUM_EXPERTS + 1, dtype=torch.int64, device=device)
        counts.scatter_add_(0, buckets, torch.ones_like(buckets))
        lengths = (counts + BLOCK_SIZE - 1) // BLOCK_SIZE * BLOCK_SIZE
        ends = lengths.cumsum(0)

        numbers = torch.arange(pairs, device=device)
        # The order within an expert is free.
        order = buckets.argsort()
        sorted_buckets = buckets[order]
        ranks = numbers - (counts.cumsum(0) - counts)[sorted_buckets]
        places = (ends - lengths)[sorted_buckets] + ranks
        num_places = pairs + (NUM_EXPERTS + 1) * (BLOCK_SIZE - 1)
        # A place without a pair holds the number of pairs.
        sorted_token_ids = torch.full(
            (num_places,), pairs, dtype=torch.int32, device=device
        )
        sorted_token_ids[places] = order.int()

        num_blocks = (num_places + BLOCK_SIZE - 1) // BLOCK_SIZE
        starts = torch.arange(num_blocks, device=device) * BLOCK_SIZE
        owners = torch.searchsorted(ends, starts, right=True) - 1
        expert_ids = torch.where(starts < ends[-1], owners, -1).int()
        return sorted_token_ids, expert_ids, ends[-1:].int()

    return run


class TestMoeAlignBlockSizeE512K10Bs16(MoeAlignTests):
    name = "moe_align_block_size_e512_k10_bs16"
    reference = staticmethod(reference_moe_align_block_size_e512_k10_bs16)
    interface = INTERFACE_MOE_ALIGN_BLOCK_SIZE_E512_K10_BS16
    axes = {"topk": 10, "one": 1}
    constants = ("num_experts", "block_size")
    NUM_EXPERTS = 512  # "e512" in the name
    BLOCK_SIZE = 16  # "bs16" in the name
    sha256 = "13a378c96428492f444d6f1afedbaa984ac5cdaaf6c36832d0c458a5cd34c7dd"


# Puts pairs of token and expert in order by expert, so that each block of 16 places is
# of one expert. Pair p is of token p // 2. First come blocks of the pairs whose id is
# none of 0 to 7: experts of other devices. Places without a pair hold the number of
# pairs, and blocks behind the last one, as those first ones, the expert -1. The order
# within an expert is free.
# model:mixtral-8x22b, model:mixtral-8x7b
# Tolerances: those of reference_moe_align_block_size_e128_bs16.
def reference_moe_align_block_size_e8_k2_bs16():
    import torch

    NUM_EXPERTS = 8
    BLOCK_SIZE = 16


    @torch.no_grad()
    def run(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        device = topk_ids.device
        experts = topk_ids.flatten().long()
        pairs = len(experts)
        # Bucket 0 has the pairs of experts that are not here.
        is_here = (experts >= 0) & (experts < NUM_EXPERTS)
        buckets = torch.where(is_here, experts + 1, 0)
        counts = torch.zeros(NUM_EXPERTS + 1, dtype=torch.int64, device=device)
        counts.scatter_add_(0, buckets, torch.ones_like(buckets))
        lengths = (counts + BLOCK_SIZE - 1) // BLOCK_SIZE * BLOCK_SIZE
        ends = lengths.cumsum(0)

        numbers = torch.arange(pairs, device=device)
        # The order within an expert is free.
        order = buckets.argsort()
        sorted_buckets = buckets[order]
        ranks = numbers - (counts.cumsum(0) - counts)[sorted_buckets]
        places = (ends - lengths)[sorted_buckets] + ranks
        num_places = pairs + (NUM_EXPERTS + 1) * (BLOCK_SIZE - 1)
        # A place without a pair holds the number of pairs.
        sorted_token_ids = torch.full(
            (num_places,), pairs, dtype=torch.int32, device=device
        )
        sorted_token_ids[places] = order.int()

        num_blocks = (num_places + BLOCK_SIZE - 1) // BLOCK_SIZE
        starts = torch.arange(num_blocks, device=device) * BLOCK_SIZE
        owners = torch.searchsorted(ends, starts, right=True) - 1
        expert_ids = torch.where(starts < ends[-1], owners, -1).int()
        return sorted_token_ids, expert_ids, ends[-1:].int()

    return run


class TestMoeAlignBlockSizeE8K2Bs16(MoeAlignTests):
    name = "moe_align_block_size_e8_k2_bs16"
    reference = staticmethod(reference_moe_align_block_size_e8_k2_bs16)
    interface = INTERFACE_MOE_ALIGN_BLOCK_SIZE_E8_K2_BS16
    axes = {"topk": 2, "one": 1}
    constants = ("num_experts", "block_size")
    NUM_EXPERTS = 8  # "e8" in the name
    BLOCK_SIZE = 16  # "bs16" in the name
    sha256 = "dc15ae51f2a41e934c7b61357553c7694e54851c2feab3f404864bfc25ade20e"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
