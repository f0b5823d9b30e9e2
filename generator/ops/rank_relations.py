"""Relations of sums over ranks: ranks are alike, and a sum may lie on any of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch

from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

SUMS_REORDERED = Bound(
    Tolerance(rtol=8e-3, atol=1e-6, nmse=1e-6),
    "float32 sums in another order: both sides round nearly the same value once, to "
    "neighbours at most: 2^-7, and that is rare",
)
SAME_SUMS = Bound(EXACT, "the same numbers are added: the sums are the same bits")


def columns_moved(parts: str, cases: Sequence[RelatedCase]) -> Relation:
    """Return the relation of columns that another rank has: their sums stay.

    `parts` names the input of what ranks have: [ranks, rows, columns].
    """
    return Relation("columns-of-a-rank-moved", partial(_moved, parts), cases)


def _moved(name: str, subject: RelatedCalls) -> Iterator[Claim]:
    """Give each column to one rank alone, then all of them to the last rank."""
    parts = subject.inputs[name]
    ranks, columns = len(parts), parts.shape[2]
    mine = torch.arange(columns) % ranks == torch.arange(ranks)[:, None]
    spread = parts.where(mine[:, None], 0.0)
    together = torch.zeros_like(parts)
    # each element is the one that is not zero
    together[-1] = spread.float().sum(0).to(parts.dtype)
    expected = subject.run({**subject.inputs, name: spread})
    actual = subject.run({**subject.inputs, name: together})
    bounds = dict.fromkeys(subject.definition.interface.outputs, SAME_SUMS)
    yield from alike(expected, actual, bounds)
