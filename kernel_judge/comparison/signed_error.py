"""Whether the errors of an output have a sign: a factor, or an offset, of the whole.

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
from dataclasses import dataclass

import torch

DEVIATIONS = 6.0
"""What is explained, in standard deviations: by chance alone 2 of 10⁹ exceed it."""

# below this many deviations nobody asks whether values are equal, which takes a sort
_PLAIN = 3.0


@dataclass(frozen=True)
class Signed:
    """Hold a figure that rounding leaves at `zero`, and its standard deviation."""

    off: float
    deviation: float


def signed_errors(
    error: torch.Tensor, expected: torch.Tensor, unit: float
) -> tuple[Signed, Signed]:
    """Return the least-squares factor less 1, and the mean error.

    `error` is actual less expected; both float64, of one shape and finite. `unit` is the
    unit roundoff of the output's dtype. Where all that is expected is zero, the factor
    is 1.
    """
    count = error.numel()
    if not count:
        return Signed(0.0, 0.0), Signed(0.0, 0.0)
    # sums of few passes: outputs have millions of elements
    squares, products = expected.square(), error * expected
    power = float(squares.sum())
    mean = float(error.sum()) / count
    ones = torch.ones((), dtype=torch.float64, device=error.device)
    of_mean = _signed(mean, error, ones, expected.abs(), count, unit, expected)
    if not power:
        return Signed(0.0, 0.0), of_mean
    # of the difference: a sum of the values' products would lose its last digits
    off = float(products.sum()) / power
    return _signed(off, products, squares, squares, power, unit, expected), of_mean


def _signed(
    off: float,
    parts: torch.Tensor,
    shares: torch.Tensor,
    scales: torch.Tensor,
    total: float,
    unit: float,
    expected: torch.Tensor,
) -> Signed:
    """Return a figure, Σparts/total, with its deviation.

    What is left of an element's part is part - off·share. An error of an element's own
    size adds `scales`/total.
    """
    left = parts - off * shares
    deviation = _root(left) / total
    if parts.dim() > 1:
        rows = left.sum(dim=-1)
        count = rows.numel()
        deviation = max(
            deviation, _root(rows) / total * math.sqrt(count / max(count - 1, 1))
        )
    deviation *= _few(parts.numel())
    rounding = unit / math.sqrt(3.0) / total
    deviation = max(deviation, rounding * _root(scales))
    if abs(off) > _PLAIN * deviation:
        _, place = torch.unique(expected.float(), return_inverse=True)
        alike = scales.new_zeros(int(place.max()) + 1)
        alike.index_add_(0, place.flatten(), scales.flatten())
        deviation = max(deviation, rounding * _root(alike))
    return Signed(off, deviation)


def _root(values: torch.Tensor) -> float:
    flat = values.reshape(-1)
    return math.sqrt(float(flat.dot(flat)))


def _few(count: int) -> float:
    """Return by how much Student's t at DEVIATIONS is wider than the normal law's."""
    freedom = max(count - 1, 1)
    return 1.0 + (DEVIATIONS**2 + 1.0) / (4.0 * freedom)
