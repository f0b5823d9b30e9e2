"""Relations of an exchange: experts of a rank are alike, and so are slots and places."""

from __future__ import annotations

from collections.abc import Iterator

from generator.ops.row_relations import reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_COPIED = Bound(EXACT, "bits are copied, none is computed")
_SUMS = Bound(
    Tolerance(rtol=8e-3, atol=1e-5, nmse=1e-6),
    "the same rows, added in another order: both sides round once, to neighbours at most",
)


def exchange_relations(definition: Definition) -> list[Relation]:
    """Return the relations of sending, or of adding up."""
    axes = {"tokens_per_rank": 3, "num_places": 3 * definition.axes["world_size"]}
    cases = [RelatedCase("three-tokens", "small", axes, {"experts": ""})]
    if "topk_ids" not in definition.interface.inputs:
        sums = {"combined": _SUMS}
        return [
            reordered("places-reversed", ["num_places"], sums, cases),
            reordered("columns-reversed", ["hidden_size"], sums, cases),
            Relation("ranks-turned", _ranks_turned, cases),
            Relation("tokens-renamed", _tokens_renamed, cases),
        ]
    copied = dict.fromkeys(("received", "sources", "counts"), _COPIED)
    return [
        reordered("slots-reversed", ["top_k"], copied, cases),
        reordered("columns-reversed", ["hidden_size"], copied, cases),
        Relation("experts-of-a-rank-renamed", _experts_renamed, cases),
        Relation("ranks-renamed", _ranks_renamed, cases),
    ]


def _experts_renamed(subject: RelatedCalls) -> Iterator[Claim]:
    """Give each token other experts of the same ranks."""
    ids = subject.inputs["topk_ids"]
    share = _share(subject)
    others = ids // share * share + (share - 1 - ids % share)
    actual = subject.run({**subject.inputs, "topk_ids": others})
    yield from alike(subject.whole, actual, dict.fromkeys(subject.whole, _COPIED))


def _ranks_renamed(subject: RelatedCalls) -> Iterator[Claim]:
    """Move all experts by a rank: each rank gets what the one before it got."""
    share = _share(subject)
    experts = subject.definition.constants["num_experts"]
    moved = (subject.inputs["topk_ids"] + share) % experts
    actual = subject.run({**subject.inputs, "topk_ids": moved})
    expected = {name: value.roll(1, 0) for name, value in subject.whole.items()}
    yield from alike(expected, actual, dict.fromkeys(expected, _COPIED))


def _share(subject: RelatedCalls) -> int:
    experts: int = subject.definition.constants["num_experts"]
    return experts // subject.definition.axes["world_size"]


def _ranks_turned(subject: RelatedCalls) -> Iterator[Claim]:
    """Give each rank what another one computed: the sums stay."""
    turned = {name: value.roll(1, 0) for name, value in subject.inputs.items()}
    yield from alike(subject.whole, subject.run(turned), {"combined": _SUMS})


def _tokens_renamed(subject: RelatedCalls) -> Iterator[Claim]:
    """Move all tokens by one number: the sums move along."""
    sources = subject.inputs["sources"]
    places = sources.shape[1]
    moved = ((sources + 1) % places).where(sources >= 0, sources)
    actual = subject.run({**subject.inputs, "sources": moved})
    whole = subject.whole["combined"]
    expected = {"combined": whole.flatten(0, 1).roll(1, 0).view(whole.shape)}
    yield from alike(expected, actual, {"combined": _SUMS})
