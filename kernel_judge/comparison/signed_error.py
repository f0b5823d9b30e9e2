"""Signed errors: a factor or an offset common to the elements of an output.

Rounding to nearest has no sign. So a least-squares factor Σae/Σe² other than 1, or a mean
error other than 0, that is more than errors of either sign explain over so many elements
is a scale that is off, a term that is left out, or rounding in one direction.

How much errors explain is their standard deviation, the larger of three:

- of the errors as they are, one independent of the other: sqrt(Σe²r²)/Σe² of the
  residuals r = a - factor·e (White 1980, doi 10.2307/1912934);
- of the errors of rows, the elements of the last axis: those of a row may share one that
  was rounded, such as a norm's root or a softmax's sum (Liang and Zeger 1986);
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
# are equal, which takes a sort
_PLAIN = 5.5

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
        self, unit: float, expected: Callable[[], torch.Tensor]
    ) -> tuple[Signed, Signed]:
        """Return the least-squares factor less 1, and the mean error.

        `unit` is the unit roundoff of the output's dtype; `expected` returns all that is
        expected. Where that is zero throughout, the factor is 1.
        """
        count, power = self._count, self._power
        if not count:
            return Signed(0.0, 0.0), Signed(0.0, 0.0)
        alike = cache(lambda: _alike(expected()))
        of_mean = self._mean.result(
            count, count, unit, math.sqrt(power), torch.abs, alike
        )
        if not power:
            return Signed(0.0, 0.0), of_mean
        fourth = math.sqrt(self._factor.shares_squared)
        of_factor = self._factor.result(power, count, unit, fourth, torch.square, alike)
        return of_factor, of_mean


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
        if parts.dim() <= 1:
            self.parts += float(parts.sum())
            return float(shares.sum())
        self.rows.append(parts.sum(dim=-1).flatten())
        self.row_shares.append(shares.sum(dim=-1).flatten())
        self.parts += float(self.rows[-1].sum())
        return float(self.row_shares[-1].sum())

    def result(
        self,
        total: float,
        count: int,
        unit: float,
        scale: float,
        scales: Callable[[torch.Tensor], torch.Tensor],
        alike: Callable[[], tuple[torch.Tensor, torch.Tensor]],
    ) -> Signed:
        """Return the figure, with its deviation.

        An error of an element's own size adds `scales` of what is expected over the total;
        `scale` is the root of their squares' sum. `alike` returns the values that are
        expected and how often each is.
        """
        # of the difference: a sum of the values' products would lose its last digits
        off = self.parts / total
        left = self.parts_squared - 2.0 * off * self.parts_shares
        left += off * off * self.shares_squared
        deviation = math.sqrt(max(left, 0.0)) / total
        if self.rows:
            rows = torch.cat(self.rows) - off * torch.cat(self.row_shares)
            number = rows.numel()
            few = math.sqrt(number / max(number - 1, 1))
            deviation = max(deviation, math.sqrt(_square(rows)) / total * few)
        deviation *= _few(count)
        rounding = unit / math.sqrt(3.0) / total
        deviation = max(deviation, rounding * scale)
        if abs(off) > _PLAIN * deviation:
            values, counts = alike()
            of_each = scales(values) * counts
            deviation = max(deviation, rounding * math.sqrt(_square(of_each)))
        return Signed(off, deviation)


def _alike(expected: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the different values of a float64 tensor, and how often each is there.

    Values are one where they are in float32's precision, in the range of float64.
    """
    bits = expected.reshape(-1).view(torch.int64)
    values = ((bits + _HALF_UNIT) & _FLOAT32_BITS).view(torch.float64)
    if values.is_cuda:
        different, counts = torch.unique(values, return_counts=True)
        return different, counts
    # NumPy's sort takes a tenth of the time of torch's on a CPU
    sorted_values, numbers = np.unique(values.numpy(), return_counts=True)
    return torch.from_numpy(sorted_values), torch.from_numpy(numbers)


def _square(values: torch.Tensor) -> float:
    flat = values.reshape(-1)
    return float(flat.dot(flat))


def _few(count: int) -> float:
    """Return by how much Student's t at DEVIATIONS is wider than the normal law's."""
    freedom = max(count - 1, 1)
    return 1.0 + (DEVIATIONS**2 + 1.0) / (4.0 * freedom)
