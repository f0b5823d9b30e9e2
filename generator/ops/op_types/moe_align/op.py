"""moe_align: where each pair of token and expert goes, so that experts have whole blocks.

Pair p is of token p // topk. Pairs of experts that are not here come first, in blocks of
the expert -1. The production kernel is SGLang's; the order within an expert is free.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.moe_align.order import SortedByExpert
from generator.ops.op_types.moe_align.relations import align_relations
from kernel_judge.comparison.tolerance import Override
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
