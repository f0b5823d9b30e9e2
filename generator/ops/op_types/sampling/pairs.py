"""Tests of independence: rows of one law in a call, and a row in two calls.

Rows that share a random number, or take mirrored or evenly spaced ones, have the right law
each. Together they don't: the tokens of two rows are equal too often or too seldom, or
their shares of a table of both are wrong. Every draw is in one pair of each kind.
"""

from __future__ import annotations

import torch

from generator.ops.chi_squared import Score, goodness, share_score
from generator.ops.op_types.sampling.law import Law

# classes of tokens of about equal probability: the table of pairs has their square
CLASSES = 4


def pair_scores(law: Law, table: torch.Tensor) -> list[tuple[str, Score]]:
    """Return the tests of pairs of draws, each with a description.

    `table`, int64 [calls, rows], has legal tokens only. A law whose boundary leaves tokens
    free has none of its own to test against.
    """
    if len(law.free):
        return []
    calls, rows = (length // 2 * 2 for length in table.shape)
    pairs = {
        "rows of one call": (table[:, 0:rows:2], table[:, 1:rows:2]),
        "a row's draws of two calls": (table[0:calls:2], table[1:calls:2]),
    }
    scores = []
    for name, (first, second) in pairs.items():
        scores += _scores(law, name, first.flatten(), second.flatten())
    return scores


def _scores(
    law: Law, name: str, first: torch.Tensor, second: torch.Tensor
) -> list[tuple[str, Score]]:
    """Return the tests of pairs, int64 [pairs] each side: equal ones, and the table."""
    share = law.weights / law.weights.sum()
    chance = float(share.square().sum())
    if not len(first) or chance == 1.0:
        return []
    equal = int((first == second).sum())
    text = f"{name} are equal in {equal} of {len(first)} pairs, {chance:.3g} expected"
    return [
        (text, share_score(equal, len(first), chance, chance)),
        (f"{name} depend on each other", _joint(law, share, first, second)),
    ]


def _joint(
    law: Law, share: torch.Tensor, first: torch.Tensor, second: torch.Tensor
) -> Score:
    """Score the table of both sides' classes of tokens against independence."""
    middle = share.cumsum(0) - share / 2.0
    class_of_rank = (middle * CLASSES).long().clamp(0, CLASSES - 1)
    class_of = torch.zeros(len(law.probs), dtype=torch.int64)
    class_of[law.tokens] = class_of_rank
    mass = torch.zeros(CLASSES, dtype=torch.float64).index_add_(0, class_of_rank, share)
    cells = class_of[first] * CLASSES + class_of[second]
    counts = torch.bincount(cells, minlength=CLASSES**2)
    weights = (mass[:, None] * mass).flatten()
    possible = weights > 0
    return goodness(counts[possible], weights[possible])
