"""Relations of collectives: ranks are alike, rows and columns stand for themselves."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
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

_REORDERED = Bound(
    Tolerance(rtol=8e-3, atol=1e-6, nmse=1e-6),
    "float32 sums in another order: both sides round nearly the same value once, to "
    "neighbours at most: 2^-7, and that is rare",
)
_COPIED = Bound(EXACT, "bits are copied, none is computed")
_SAME_SUMS = Bound(EXACT, "the same numbers are added: the sums are the same bits")


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
        same = {"scattered": _SAME_SUMS}
        return [
            reordered("columns-reversed", ("hidden_size",), same, cases),
            Relation("ranks-reversed", _ranks_reversed, cases),
            Relation("columns-of-a-rank-moved", _moved, cases),
            Relation("parts-turned", _parts_turned, cases),
        ]
    alike_sums, same = {"reduced": _REORDERED}, {"reduced": _SAME_SUMS}
    return [
        reordered("ranks-reversed", ("world_size",), alike_sums, cases),
        reordered("rows-and-columns-reversed", (*rows, "hidden_size"), same, cases),
        in_two_parts("rows-in-two", "num_tokens", same, cases),
        Relation("columns-of-a-rank-moved", _moved, cases),
    ]


def _bounds(subject: RelatedCalls, bound: Bound) -> dict[str, Bound]:
    return dict.fromkeys(subject.definition.interface.outputs, bound)


def _ranks_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Give each rank another's part: the sums stay where they are."""
    actual = subject.run({"partial_sums": subject.inputs["partial_sums"].flip(0)})
    yield from alike(subject.whole, actual, _bounds(subject, _REORDERED))


def _moved(subject: RelatedCalls) -> Iterator[Claim]:
    """Give each column to one rank alone, then all of them to the last rank."""
    parts = subject.inputs["partial_sums"]
    ranks, columns = len(parts), parts.shape[2]
    mine = torch.arange(columns) % ranks == torch.arange(ranks)[:, None]
    spread = parts.where(mine[:, None], 0.0)
    together = torch.zeros_like(parts)
    # each element is the one that is not zero
    together[-1] = spread.float().sum(0).to(parts.dtype)
    expected = subject.run({"partial_sums": spread})
    actual = subject.run({"partial_sums": together})
    yield from alike(expected, actual, _bounds(subject, _SAME_SUMS))


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
    yield from alike(expected, actual, {"scattered": _SAME_SUMS})
