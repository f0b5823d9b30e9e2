"""χ² tests: counts against what a law expects, and against other counts.

Tokens that are expected less than 5 times are pooled, or the statistic would not be
distributed as χ². The p-value is the regularised upper incomplete gamma function of
half the degrees of freedom and half the statistic. Counts that fit a law better than
draws do, such as those of a low-discrepancy sequence, are as improbable: both tails count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

# of all tests of one comparison together
SIGNIFICANCE = 1e-6
FEWEST = 5.0
# from so many degrees of freedom on a statistic near 0 is improbable
SMOOTH = 16
# tokens below FEWEST each, pooled up to this, are at least FEWEST together
_POOL = 2 * FEWEST


@dataclass(frozen=True)
class Score:
    """A χ² statistic and its degrees of freedom.

    Of one with `both` tails a statistic that is too small counts as well.
    """

    statistic: float
    freedom: int
    both: bool = False

    @property
    def p_value(self) -> float:
        """Return how probable a statistic as extreme is where the law holds."""
        if self.freedom == 0:
            return 1.0
        halves = torch.tensor(
            [self.freedom / 2, self.statistic / 2], dtype=torch.float64
        )
        above = float(torch.special.gammaincc(halves[0], halves[1]))
        # few bins are met exactly by chance, as no continuous law is
        if not self.both or self.freedom < SMOOTH:
            return above
        below = float(torch.special.gammainc(halves[0], halves[1]))
        return min(1.0, 2.0 * min(above, below))


def total(scores: list[Score]) -> Score:
    """Return the score of independent scores together."""
    return Score(
        sum(s.statistic for s in scores),
        sum(s.freedom for s in scores),
        any(s.both for s in scores),
    )


def of_chance(chance: float) -> Score:
    """Return the score of a p-value: -2 ln of it is χ² with 2 degrees of freedom."""
    return Score(-2.0 * math.log(min(max(chance, 1e-300), 1.0)), 2)


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
    """Score counts against a law, by the ratio of likelihoods; both tails count.

    `counts` is int64 [tokens], `weights` float64 [tokens] of any positive sum. Where a
    bin is expected 5 times, Pearson's statistic exceeds χ²'s far quantiles a hundred
    times too often; the likelihood's does not, and Williams' divisor (1976,
    doi 10.2307/2335081) gives it χ²'s mean.
    """
    draws = float(counts.sum())
    if draws == 0.0:
        return Score(0.0, 0)
    expected = draws * weights / weights.sum()
    where = bins(expected)
    seen, hoped = _pooled(counts.double(), where), _pooled(expected, where)
    freedom = len(hoped) - 1
    if not freedom:
        return Score(0.0, 0)
    ratio = 2.0 * float(torch.special.xlogy(seen, seen / hoped).sum())
    divisor = 1.0 + (float((1.0 / hoped).sum()) - 1.0 / draws) / (6.0 * freedom)
    return Score(max(ratio, 0.0) / divisor, freedom, both=True)


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
    """Score how often an event came whose probability is within low … high.

    By Chernoff's bound, exp(-draws·KL) of each tail, which holds for any number of draws.
    """
    if not draws:
        return Score(0.0, 0)
    share = count / draws
    nearest = min(max(share, low), high)
    if nearest in (0.0, 1.0):
        return of_chance(1.0 if share == nearest else 0.0)
    distance = _xlogy(share, share / nearest)
    distance += _xlogy(1.0 - share, (1.0 - share) / (1.0 - nearest))
    return of_chance(2.0 * math.exp(-draws * distance))


def coincidences(counts: torch.Tensor, weights: torch.Tensor) -> Score:
    """Score how many pairs of draws are of one token, among tokens that are rare.

    `counts` is int64 [tokens], `weights` float64 [tokens] of any positive sum, and rare
    is a token that is expected less than once. Random numbers of few bits, or ones that
    come again, coincide too often, a sequence that avoids itself too seldom. The number
    is nearly a Poisson law's, bounded by Chernoff.
    """
    draws = float(counts.sum())
    rare = weights * draws < weights.sum()
    seen, weight = counts[rare].double(), weights[rare]
    among = float(seen.sum())
    if among < 2:
        return Score(0.0, 0)
    share = weight / weight.sum()
    hoped = among * (among - 1.0) / 2.0 * float(share.square().sum())
    pairs = float((seen * (seen - 1.0)).sum()) / 2.0
    return of_chance(2.0 * math.exp(-(hoped - pairs + _xlogy(pairs, pairs / hoped))))


def tempered(counts: torch.Tensor, weights: torch.Tensor) -> Score:
    """Score counts against the same law at other temperatures, weights to a power.

    `counts` is int64 [tokens], `weights` float64 [tokens] of any positive sum. The mean
    of ln w is what tells powers apart. Its chance is bounded by Chernoff: with
    K(t) = ln Σ p·w^t it is exp(-draws·max_t(t·mean - K(t))), in each tail.
    """
    draws = float(counts.sum())
    levels, place = torch.unique(weights, return_inverse=True)
    if draws == 0.0 or len(levels) < 2:
        return Score(0.0, 0)
    mass = torch.zeros(len(levels), dtype=torch.float64)
    mass.index_add_(0, place, weights / weights.sum())
    height = levels.log()
    height = height - float((mass * height).sum())
    mean = float((counts * height[place]).sum()) / draws
    log_mass = mass.log()
    # the mean under weights to the power 1 + t rises with t
    low, high = -16.0, 16.0
    for _ in range(48):
        power = (low + high) / 2.0
        shares = (log_mass + power * height).softmax(0)
        low, high = (
            (power, high) if float((shares * height).sum()) < mean else (low, power)
        )
    cumulant = float((log_mass + power * height).logsumexp(0))
    return of_chance(2.0 * math.exp(-draws * max(power * mean - cumulant, 0.0)))


def unseen(counts: torch.Tensor, weights: torch.Tensor) -> Score:
    """Score the most probable token that was never drawn.

    `counts` is int64 [tokens], `weights` float64 [tokens] of any positive sum.

    That one as probable is missing is no more probable than the sum of the chances of
    each.
    """
    draws, missing = float(counts.sum()), counts == 0
    if draws == 0.0 or not bool(missing.any()):
        return Score(0.0, 2)
    shares = weights / weights.sum()
    as_probable = shares[shares >= shares[missing].max()]
    chance = float((1.0 - as_probable).pow(draws).sum())
    return of_chance(chance)


def _xlogy(factor: float, value: float) -> float:
    return factor * math.log(value) if factor else 0.0


def _pooled(values: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
    size = int(where.max()) + 1
    return torch.zeros(size, dtype=torch.float64).index_add_(0, where, values)
