"""Relations of experts: order says nothing, and shards of two devices add up.

Expert parallelism gives a device some of the experts; tensor parallelism gives it some
of the columns between the products of each.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.op_types.moe_experts.inputs import expert_sizes, is_mxfp4
from generator.ops.row_relations import reordered
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_ALIKE = {
    "output": Bound(
        Tolerance(rtol=8e-3, atol=6e-4, nmse=1e-6),
        "float32 sums in another order, of outputs of about 1 that cancel; both sides "
        "round once, to neighbours at most: 2^-7, and that is rare",
    )
}
_ADDED = Bound(
    Tolerance(rtol=4e-3, atol=3.2e-2, nmse=1e-5),
    "both parts and the whole are rounded to bfloat16, by 2^-8 at most: parts of 4 that "
    "cancel leave 3.2e-2; three roundings of 2.4e-6 (2^-8/sqrt(3)/1.44, squared) are "
    "7e-6 of the power",
)


def expert_relations(definition: Definition) -> list[Relation]:
    """Return the relations; a token of one expert has no order of experts."""
    experts, top_k = expert_sizes(definition.axes)
    # of few experts, which saves time: a token's others are elsewhere
    params = {"hot": min(2, experts)}
    cases = [RelatedCase("three-tokens", "small", {"seq_len": 3}, params)]
    relations = [
        reordered("tokens-reversed", ["seq_len"], _ALIKE, cases),
        Relation("expert-shards-add-up", _expert_shards, cases),
        Relation("column-shards-add-up", _column_shards, cases),
    ]
    slots = "top_k" if "top_k" in definition.axes else "top_k_and_shared"
    if top_k > 1:
        relations.append(reordered("slots-reversed", [slots], _ALIKE, cases))
    return relations


def _expert_shards(subject: RelatedCalls) -> Iterator[Claim]:
    """Add the outputs of two devices: experts of the other one are -1."""
    ids = subject.inputs["topk_ids"]
    cut = int(ids[ids >= 0].float().mean().ceil())
    total = torch.zeros_like(subject.whole["output"], dtype=torch.float64)
    for here in (ids < cut, ids >= cut):
        shard = {**subject.inputs, "topk_ids": torch.where(here, ids, -1)}
        total += subject.run(shard)["output"]
    yield from _sum(subject, total)


def _column_shards(subject: RelatedCalls) -> Iterator[Claim]:
    """Add the outputs of two halves of the columns: the other half of w2 is zeros.

    The bias of w2 is added on one device alone.
    """
    whole = subject.inputs["w2"].tensor(torch.device("cpu"))
    half = whole.shape[2] // 2
    total = torch.zeros_like(subject.whole["output"], dtype=torch.float64)
    for place, other in enumerate((slice(half, None), slice(0, half))):
        w2 = whole.clone()
        w2[:, :, other] = 0
        shard = {**subject.inputs, "w2": w2}
        if place and is_mxfp4(subject.definition):
            shard["w2_bias"] = torch.zeros_like(shard["w2_bias"])
        total += subject.run(shard)["output"]
    yield from _sum(subject, total)


def _sum(subject: RelatedCalls, total: torch.Tensor) -> Iterator[Claim]:
    yield from alike(subject.whole, {"output": total}, {"output": _ADDED})
