"""Relations of collectives: ranks are alike, rows and columns stand for themselves."""

from __future__ import annotations

from collections.abc import Iterator

from generator.ops.rank_relations import SAME_SUMS, SUMS_REORDERED, columns_moved
from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT
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


def collective_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a definition's kind."""
    ranks = definition.axes["world_size"]
    cases = [RelatedCase("seven-rows", "small", {"num_tokens": 7})]
    rows = ("num_tokens",)
    if "shards" in definition.interface.inputs:
        copied = {"gathered": _COPIED}
        return [
            reordered("rows-reversed", rows, copied, cases),
            in_two_parts("rows-in-two", "num_tokens", copied, cases),
            Relation("shards-turned", _shards_turned, cases),
        ]
    if "scattered" in definition.interface.outputs:
        axes = {"num_tokens": 3 * ranks, "tokens_per_rank": 3}
        cases = [RelatedCase("three-rows-each", "small", axes)]
        same = {"scattered": SAME_SUMS}
        return [
            reordered("columns-reversed", ("hidden_size",), same, cases),
            Relation("ranks-reversed", _ranks_reversed, cases),
            columns_moved("partial_sums", cases),
            Relation("parts-turned", _parts_turned, cases),
        ]
    alike_sums, same = {"reduced": SUMS_REORDERED}, {"reduced": SAME_SUMS}
    return [
        reordered("ranks-reversed", ("world_size",), alike_sums, cases),
        reordered("rows-and-columns-reversed", (*rows, "hidden_size"), same, cases),
        in_two_parts("rows-in-two", "num_tokens", same, cases),
        columns_moved("partial_sums", cases),
    ]


def _ranks_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Give each rank another's part: the sums stay where they are."""
    actual = subject.run({"partial_sums": subject.inputs["partial_sums"].flip(0)})
    yield from alike(subject.whole, actual, {"scattered": SUMS_REORDERED})


def _shards_turned(subject: RelatedCalls) -> Iterator[Claim]:
    """Give each rank the columns of the one before: they stand one shard later."""
    shards = subject.inputs["shards"]
    actual = subject.run({"shards": shards.roll(1, 0)})
    expected = {"gathered": subject.whole["gathered"].roll(shards.shape[2], 1)}
    yield from alike(expected, actual, {"gathered": _COPIED})


def _parts_turned(subject: RelatedCalls) -> Iterator[Claim]:
    """Move all tokens by a part: each rank keeps what the one before it kept."""
    parts = subject.inputs["partial_sums"]
    share = parts.shape[1] // len(parts)
    actual = subject.run({"partial_sums": parts.roll(share, 1)})
    expected = {"scattered": subject.whole["scattered"].roll(1, 0)}
    yield from alike(expected, actual, {"scattered": SAME_SUMS})
