"""Relations of routing: tokens are independent, experts have no rank, weights a sum."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_ALIKE = {
    "topk_weights": Bound(
        Tolerance(rtol=2e-6, atol=1e-30, nmse=1e-12),
        "the same float32 operations, sums in another order: some roundings of 2^-24",
    ),
    "topk_ids": Bound(EXACT, "numbers, and every choice is clear"),
}
_SUM = Bound(
    Tolerance(rtol=1e-6, atol=0.0, nmse=1e-12),
    "ten weights at most, each with one rounding of 2^-24, and the float32 sum of them",
)
_FACTOR = Bound(EXACT, "a factor of 2 changes the exponent alone")


def routing_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a definition's kind."""
    inputs = definition.interface.inputs
    axes = {"num_tokens": 5}
    if "tid2eid" in inputs:
        axes["vocab_size"] = 100
    cases = [RelatedCase("five-tokens", "small", axes, {"std": 2.0})]
    relations = [
        reordered("rows-reversed", ["num_tokens"], _ALIKE, cases),
        in_two_parts("rows-in-two", "num_tokens", _ALIKE, cases),
        Relation("experts-renamed", _renamed, cases),
    ]
    if definition.constants["scoring_func"] != "sigmoid" or "bias" in inputs:
        relations.append(Relation("weights-add-up", _add_up, cases))
    if "bias" in inputs:
        relations.append(Relation("factor-doubled", _doubled, cases))
        relations.append(Relation("bias-shifted", _shifted, cases))
    if "tid2eid" in inputs:
        relations.append(Relation("experts-whatever-logits", _by_table, cases))
    return relations


def _renamed(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the experts other numbers, groups as a whole and within each group."""
    definition, inputs = subject.definition, dict(subject.inputs)
    experts = definition.axes["num_experts"]
    groups = definition.constants.get("n_group", 1)
    order = torch.arange(experts).view(groups, -1)[Stream("groups").permutation(groups)]
    order = order[:, Stream("experts").permutation(experts // groups)].flatten()
    # the expert `e` is where the order has it
    place = order.argsort()
    inputs["router_logits"] = inputs["router_logits"][:, order].contiguous()
    if "bias" in inputs:
        inputs["bias"] = inputs["bias"][order].contiguous()
    if "tid2eid" in inputs:
        inputs["tid2eid"] = place[inputs["tid2eid"].long()].to(torch.int32)
    actual = subject.run(inputs)
    expected = dict(subject.whole)
    expected["topk_ids"] = place[expected["topk_ids"].long()].to(torch.int32)
    yield from alike(expected, actual, _ALIKE)


def _add_up(subject: RelatedCalls) -> Iterator[Claim]:
    """Add up the weights of each token: they are the factor, or 1."""
    total = subject.whole["topk_weights"].double().sum(dim=1)
    factor = float(subject.inputs.get("routed_scaling_factor", 1.0))
    yield Claim("topk_weights", total, torch.full_like(total, factor), _SUM)


def _doubled(subject: RelatedCalls) -> Iterator[Claim]:
    """Double the factor: the weights are doubled, and the experts the same."""
    factor = 2.0 * subject.inputs["routed_scaling_factor"]
    actual = subject.run({**subject.inputs, "routed_scaling_factor": factor})
    expected = 2.0 * subject.whole["topk_weights"]
    yield Claim("topk_weights", actual["topk_weights"], expected, _FACTOR)
    ids = subject.whole["topk_ids"]
    yield Claim("topk_ids", actual["topk_ids"], ids, _ALIKE["topk_ids"])


def _shifted(subject: RelatedCalls) -> Iterator[Claim]:
    """Add the same to every bias: neither experts nor weights change."""
    actual = subject.run({**subject.inputs, "bias": subject.inputs["bias"] - 1.5})
    yield from alike(subject.whole, actual, _ALIKE)


def _by_table(subject: RelatedCalls) -> Iterator[Claim]:
    """Negate the logits: the table chooses the same experts."""
    logits = -subject.inputs["router_logits"]
    actual = subject.run({**subject.inputs, "router_logits": logits})
    ids = subject.whole["topk_ids"]
    yield Claim("topk_ids", actual["topk_ids"], ids, _ALIKE["topk_ids"])
