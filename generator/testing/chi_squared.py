"""Pearson's χ² test: counts against what a law expects, and against other counts.

Tokens that are expected less than 5 times are pooled, or the statistic would not be
distributed as χ². The p-value is the regularised upper incomplete gamma function of
half the degrees of freedom and half the statistic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

# of all tests of one comparison together
SIGNIFICANCE = 1e-6
FEWEST = 5.0
# tokens below FEWEST each, pooled up to this, are at least FEWEST together
_POOL = 2 * FEWEST


@dataclass(frozen=True)
class Score:
    """Hold a χ² statistic and its degrees of freedom."""

    statistic: float
    freedom: int

    @property
    def p_value(self) -> float:
        """Return how probable at least this statistic is where the law holds."""
        if self.freedom == 0:
            return 1.0
        halves = torch.tensor(
            [self.freedom / 2, self.statistic / 2], dtype=torch.float64
        )
        return float(torch.special.gammaincc(halves[0], halves[1]))


def total(scores: list[Score]) -> Score:
    """Return the score of independent scores together."""
    return Score(sum(s.statistic for s in scores), sum(s.freedom for s in scores))


def bins(expected: torch.Tensor) -> torch.Tensor:
    """Return each token's bin: int64 [tokens], from 0 on.

    `expected` is float64 [tokens]: how often each is expected to be drawn.
    Tokens that are expected often enough have a bin of their own; the others are
    pooled with their neighbours in the order given.
    """
    often = expected >= FEWEST
    result = torch.empty(len(expected), dtype=torch.int64)
    alone = int(often.sum())
    result[often] = torch.arange(alone)
    rare = expected[~often]
    if len(rare) == 0:
        return result
    start = rare.cumsum(0) - rare
    pools = int(float(rare.sum()) / _POOL)
    # the last pool takes what is left over; too little for a pool joins a token
    pool = (start / _POOL).long().clamp_max(max(pools - 1, 0)) + alone
    result[~often] = pool if float(rare.sum()) >= FEWEST else max(alone - 1, 0)
    return result


def goodness(counts: torch.Tensor, weights: torch.Tensor) -> Score:
    """Score counts against a law.

    `counts` is int64 [tokens], `weights` float64 [tokens] of any positive sum.
    """
    draws = float(counts.sum())
    if draws == 0.0:
        return Score(0.0, 0)
    expected = draws * weights / weights.sum()
    where = bins(expected)
    seen, hoped = _pooled(counts.double(), where), _pooled(expected, where)
    statistic = float(((seen - hoped).square() / hoped).sum())
    return Score(statistic, len(hoped) - 1)


def homogeneity(
    first: torch.Tensor, second: torch.Tensor, weights: torch.Tensor
) -> Score:
    """Score two samples' counts against each other.

    `first` and `second` are int64 [tokens], `weights` float64 [tokens]: by them tokens
    that are expected seldom are pooled.
    """
    n, m = float(first.sum()), float(second.sum())
    if n == 0.0 or m == 0.0:
        return Score(0.0, 0)
    where = bins(min(n, m) * weights / weights.sum())
    a, b = _pooled(first.double(), where), _pooled(second.double(), where)
    both = (a + b).clamp_min(1.0)
    statistic = float(
        (a * (m / n) ** 0.5 - b * (n / m) ** 0.5).square().div(both).sum()
    )
    return Score(statistic, len(a) - 1)


def share_score(count: int, draws: int, low: float, high: float) -> Score:
    """Score how often an event came whose probability is within low … high."""
    nearest = min(max(count / draws, low), high) if draws else low
    spread = draws * nearest * (1.0 - nearest)
    if spread == 0.0:
        return Score(0.0, 0)
    return Score((count - draws * nearest) ** 2 / spread, 1)


def unseen(counts: torch.Tensor, weights: torch.Tensor) -> Score:
    """Score the most probable token that was never drawn.

    `counts` is int64 [tokens], `weights` float64 [tokens] of any positive sum.

    That one as probable is missing is no more probable than the sum of the chances of
    each. -2 ln of a p-value is distributed as χ² with 2 degrees of freedom.
    """
    draws, missing = float(counts.sum()), counts == 0
    if draws == 0.0 or not bool(missing.any()):
        return Score(0.0, 2)
    shares = weights / weights.sum()
    as_probable = shares[shares >= shares[missing].max()]
    chance = float((1.0 - as_probable).pow(draws).sum())
    return Score(-2.0 * math.log(min(max(chance, 1e-300), 1.0)), 2)


def _pooled(values: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
    size = int(where.max()) + 1
    return torch.zeros(size, dtype=torch.float64).index_add_(0, where, values)
