"""Signed errors: a factor or an offset common to the elements of an output.

Rounding to nearest has no sign. So a least-squares factor Σae/Σe² other than 1, or a mean
error other than 0, that is more than errors of either sign explain over so many elements
is a scale that is off, a term that is left out, or rounding in one direction.

How much errors explain is their standard deviation, the largest of four:

- of the errors as they are, one independent of the other: sqrt(Σe²r²)/Σe² of the
  residuals r = a - factor·e (White 1980, doi 10.2307/1912934);
- of the errors of rows, the elements of the last axis: those of a row may share one that
  was rounded, such as a norm's root or a softmax's sum (Liang and Zeger 1986);
- of the sums along each other axis: elements of an outer product share the errors of one
  factor along rows, and of the other across them. Of fewer than 64 such sums, those of a
  part that is off by a factor would explain it;
- of half a unit in the last place of the output's dtype, uniformly distributed, as one
  rounding makes it: u/√3·sqrt(Σe⁴)/Σe². Equal values are rounded alike, so that a value
  that comes often counts as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch

DEVIATIONS = 6.0
"""What is explained, in standard deviations: by chance alone 2 of 10⁹ exceed it."""

# below this many deviations, of which DEVIATIONS are explained, nobody asks whether values
# are equal, which takes a sort, or share errors across rows
_PLAIN, _FEWEST_SUMS = 5.5, 64

# the 29 bits by which float64's significand is longer than float32's
_HALF_UNIT, _FLOAT32_BITS = 1 << 28, ~((1 << 29) - 1)


@dataclass(frozen=True)
class Signed:
    """A figure that rounding leaves at `zero`, and its standard deviation."""

    off: float
    deviation: float


class SignedSums:
    """Sum what the least-squares factor and the mean error follow from, block by block.

    A block is some rows of an output, or some elements of one without rows; all are
    float64 and finite.
    """

    def __init__(self) -> None:
        self._count, self._power = 0, 0.0
        self._mean, self._factor = _Sums(), _Sums()

    def add(
        self, error: torch.Tensor, expected: torch.Tensor, of_rows: torch.Tensor
    ) -> tuple[float, float]:
        """Add a block: a-e, e, and the sums of a-e by rows; return Σe² and Σ(a-e)²."""
        self._count += error.numel()
        power = self._factor.add(error * expected, expected * expected)
        self._power += power
        # of the mean each element's share is 1
        error_power = _square(error)
        self._mean.parts_squared += error_power
        self._mean.shares_squared += error.numel()
        if error.dim() > 1:
            self._mean.rows.append(of_rows.flatten())
            shares = torch.full_like(self._mean.rows[-1], error.shape[-1])
            self._mean.row_shares.append(shares)
        self._mean.parts += float(of_rows.sum())
        self._mean.parts_shares = self._mean.parts
        return power, error_power

    def result(
        self, unit: float, whole: Callable[[], tuple[torch.Tensor, ...]]
    ) -> tuple[Signed, Signed]:
        """Return the least-squares factor less 1, and the mean error.

        `unit` is the unit roundoff of the output's dtype; `whole` returns a-e and e of the
        whole output. Where e is zero throughout, the factor is 1.
        """
        count, power = self._count, self._power
        if not count:
            return Signed(0.0, 0.0), Signed(0.0, 0.0)
        known = cache(lambda: (*(both := whole()), *_alike(both[1])))
        root = math.sqrt(power)
        of_mean = self._mean.result(count, count, unit, root, torch.ones_like, known)
        if not power:
            return Signed(0.0, 0.0), of_mean
        fourth = math.sqrt(self._factor.shares_squared)
        factor = self._factor.result(power, count, unit, fourth, torch.clone, known)
        return factor, of_mean


@dataclass
class _Sums:
    """Sums of the parts and shares of a figure, Σparts/total.

    What is left of an element's part is part - off·share. `rows` and `row_shares` hold
    the sums of rows.
    """

    parts: float = 0.0
    parts_squared: float = 0.0
    parts_shares: float = 0.0
    shares_squared: float = 0.0
    rows: list[torch.Tensor] = field(default_factory=list)
    row_shares: list[torch.Tensor] = field(default_factory=list)

    def add(self, parts: torch.Tensor, shares: torch.Tensor) -> float:
        """Add a block; return the sum of its shares."""
        self.parts_squared += _square(parts)
        self.shares_squared += _square(shares)
        self.parts_shares += float(parts.reshape(-1).dot(shares.reshape(-1)))
        of_rows, of_shares = (t.sum(dim=-1).flatten() for t in (parts, shares))
        if parts.dim() > 1:
            self.rows.append(of_rows)
            self.row_shares.append(of_shares)
        self.parts += float(of_rows.sum())
        return float(of_shares.sum())

    def result(
        self,
        total: float,
        count: int,
        unit: float,
        scale: float,
        weighed: Callable[[torch.Tensor], torch.Tensor],
        whole: Callable[[], tuple[torch.Tensor, ...]],
    ) -> Signed:
        """Return the figure, with its deviation.

        An error adds itself times what is expected, `weighed`, over the total; `scale` is
        the root of the sum of squares where it is an element's own size.
        """
        # of the difference: a sum of the values' products would lose its last digits
        off = self.parts / total
        left = self.parts_squared - 2.0 * off * self.parts_shares
        left += off * off * self.shares_squared
        deviation = math.sqrt(max(left, 0.0)) / total
        if self.rows:
            rows = torch.cat(self.rows) - off * torch.cat(self.row_shares)
            few = math.sqrt(len(rows) / max(len(rows) - 1, 1))
            deviation = max(deviation, math.sqrt(_square(rows)) / total * few)
        deviation *= _few(count)
        rounding = unit / math.sqrt(3.0) / total
        deviation = max(deviation, rounding * scale)
        if abs(off) > _PLAIN * deviation:
            error, expected, values, counts = whole()
            alike = _square(values * weighed(values) * counts)
            deviation = max(deviation, rounding * math.sqrt(alike))
            rest = weighed(expected) * (error - off * weighed(expected))
            for sums in (rest.sum(dim=axis) for axis in range(rest.dim() - 1)):
                many = sums.numel() >= _FEWEST_SUMS
                deviation = max(deviation, many * math.sqrt(_square(sums)) / total)
        return Signed(off, deviation)


def _alike(expected: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the values of a float64 tensor that float32's digits tell apart, and counts."""
    bits = expected.reshape(-1).view(torch.int64)
    values = ((bits + _HALF_UNIT) & _FLOAT32_BITS).view(torch.float64)
    if values.is_cuda:
        different, counts = torch.unique(values, return_counts=True)
        return different, counts
    # NumPy's sort takes a tenth of the time of torch's on a CPU
    return (*map(torch.from_numpy, np.unique(values.numpy(), return_counts=True)),)


def _square(values: torch.Tensor) -> float:
    flat = values.reshape(-1)
    return float(flat.dot(flat))


def _few(count: int) -> float:
    """Return by how much Student's t at DEVIATIONS is wider than the normal law's."""
    return 1.0 + (DEVIATIONS**2 + 1.0) / (4.0 * max(count - 1, 1))
