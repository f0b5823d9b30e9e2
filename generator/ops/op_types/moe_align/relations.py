"""Relations of places by expert: the order of tokens, names of experts, pairs elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    Outputs,
    RelatedCalls,
    RelatedCase,
    Relation,
)

_SAME = Bound(EXACT, "places are numbers, of which one is right")


def align_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a routing by blocks."""
    experts, block = (
        definition.constants["num_experts"],
        definition.constants["block_size"],
    )
    places = 6 * definition.axes["topk"] + (experts + 1) * (block - 1)
    axes = {"num_tokens": 6, "num_places": places, "num_blocks": -(-places // block)}
    cases = [RelatedCase("six-tokens", "small", axes, {"kind": "shard"})]
    return [
        Relation("experts-reversed", _reversed, cases),
        Relation("tokens-reversed", _turned, cases),
        Relation("every-pair-once", _once, cases),
    ]


def _of_pairs(subject: RelatedCalls, places: Outputs) -> torch.Tensor:
    """Return the expert of each pair as its block says: int64 [pairs], -2 without one."""
    block = subject.definition.constants["block_size"]
    pairs = subject.inputs["topk_ids"].numel()
    experts = torch.full((pairs + 1,), -2)
    owners = places["expert_ids"].long().repeat_interleave(block)
    ids = places["sorted_token_ids"].long()
    experts[ids] = owners[: len(ids)]
    return experts[:pairs]


def _once(subject: RelatedCalls) -> Iterator[Claim]:
    """Read each pair's expert from the blocks, and count the pairs."""
    wanted = subject.inputs["topk_ids"].flatten().long()
    yield Claim("expert_ids", _of_pairs(subject, subject.whole), wanted, _SAME)
    ids = subject.whole["sorted_token_ids"].long()
    counted = torch.bincount(ids, minlength=len(wanted) + 1)[: len(wanted)]
    yield Claim("sorted_token_ids", counted, torch.ones_like(counted), _SAME)


def _reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the experts other numbers: the pairs of an expert stay together."""
    last = subject.definition.constants["num_experts"] - 1
    ids = subject.inputs["topk_ids"]
    other = torch.where(ids < 0, ids, last - ids)
    actual = subject.run({"topk_ids": other})
    yield Claim("expert_ids", _of_pairs(subject, actual), other.flatten().long(), _SAME)
    used = "num_tokens_post_pad"
    yield Claim(used, actual[used], subject.whole[used], _SAME)


def _turned(subject: RelatedCalls) -> Iterator[Claim]:
    """Turn the order of the tokens round: blocks keep their experts."""
    other = subject.inputs["topk_ids"].flip(0).contiguous()
    actual = subject.run({"topk_ids": other})
    for name in ("expert_ids", "num_tokens_post_pad"):
        yield Claim(name, actual[name], subject.whole[name], _SAME)
