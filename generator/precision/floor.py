"""What is needed of a tolerance, from what right answers were off in one case.

Errors are compared as errors. NMSE is an energy: a defect ten times as large has a
hundred times its NMSE, so that shares of an NMSE bound are those of its square root. Of
an elementwise bound the share is that of the element nearest to its own bound,
|a - e| / (atol + rtol·|e|); where a hit ratio is allowed, of the nearest one that has
to be within.

The last rounding is no error that could be larger elsewhere: it is half a unit in the
last place at most, wherever the exact value lies, and needs no room for safety. So an
error is split: what one rounding may take, and the rest, which is arithmetic and of
which other inputs, other hardware and other orders of summation may show more.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch

from generator.support.tolerance import Tolerance

# so many times the arithmetic error that was seen a bound must leave room for, a
# proposed one does, and no bound against an oracle may exceed in all
LEAST, PROPOSED, MOST = 3.0, 10.0, 50.0


@dataclass(frozen=True)
class Measured:
    """Hold what one case shows of one output against one source.

    `floor`, `reference` and `source` are root mean squares relative to that of the
    exact output: of one rounding of it to its dtype, of the reference's error and of
    the source's. Those are None where the float64 run is of another geometry.
    `allowed` is that of the tolerance: of its elementwise bound or, where that is less,
    of its NMSE. `share` and `energy` are the shares of the elementwise and of the NMSE
    bound that the errors take. `least` and `proposed` are factors of the elementwise
    bound, with `_nmse` values, which leave LEAST and PROPOSED times the arithmetic
    error.
    """

    case: str
    elements: int
    allowed: float
    share: float
    energy: float
    least: float
    least_nmse: float
    proposed: float
    proposed_nmse: float
    floor: float | None = None
    reference: float | None = None
    source: float | None = None

    @property
    def used(self) -> float:
        """Return the share of the bound that an error scaled up meets first."""
        return max(self.share, self.energy)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON values."""
        return asdict(self)


def measured(
    case: str,
    actual: torch.Tensor,
    expected: torch.Tensor,
    tolerance: Tolerance,
    *,
    roundings: int,
    exact: torch.Tensor | None = None,
) -> Measured | None:
    """Return what is needed for `actual`, the reference's output, to pass.

    `roundings` is 1 against an oracle, whose output is not rounded, and 2 against a
    kernel: neighbours then are as near as two right answers need be. `exact` is the
    float64 run's output at the same places. None where nothing is finite and not zero.
    """
    a, e = actual.double(), expected.double()
    finite = a.isfinite() & e.isfinite()
    a, e = a[finite], e[finite]
    power = float(e.square().sum())
    if power == 0.0:
        return None
    rounding = roundings * half_ulp(e, actual.dtype)
    error = (a - e).abs()
    beyond = (error - rounding).clamp_min(0.0)
    bound = tolerance.atol + tolerance.rtol * e.abs()
    nmse = float(error.square().sum()) / power
    once = roundings * _power(e.to(actual.dtype).double() - e) / power
    if roundings > 1:
        # two answers that round the same value need not differ at all
        once = min(roundings * _rms_ulp(e, actual.dtype) / power, nmse)
    more = max(nmse - once, 0.0)

    def share(times: float) -> float:
        return _at(tolerance.hit_ratio, (rounding + times * beyond) / bound)

    allowed = math.sqrt(_power(bound) / power)
    energy = 0.0
    if tolerance.nmse:
        energy = math.sqrt(max(nmse, once) / tolerance.nmse)
        allowed = min(allowed, math.sqrt(tolerance.nmse))
    return Measured(
        case,
        int(e.numel()),
        allowed,
        share(1.0),
        energy,
        share(LEAST),
        once + LEAST**2 * more,
        share(PROPOSED),
        once + PROPOSED**2 * more,
        **_of_exact(a, e, exact, finite, actual.dtype),
    )


def half_ulp(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return half a unit in the last place of a dtype at float64 values; 0 at zeros."""
    about = torch.finfo(dtype)
    exponent = torch.frexp(value)[1] - 1
    unit = torch.ldexp(torch.full_like(value, about.eps), exponent)
    return torch.where(value == 0, 0.0, unit.clamp_min(about.eps * about.tiny) / 2)


def rounded_up(value: float) -> float:
    """Return the next number of one significant digit: 3.2e-06 gives 4e-06."""
    if not (value > 0.0 and math.isfinite(value)):
        return value
    scale = 10.0 ** math.floor(math.log10(value))
    # a digit that is there but for the last bits stays
    return float(f"{math.ceil(value / scale - 1e-9) * scale:.0e}")


def _of_exact(
    a: torch.Tensor,
    e: torch.Tensor,
    exact: torch.Tensor | None,
    finite: torch.Tensor,
    dtype: torch.dtype,
) -> dict[str, float]:
    """Return floor and errors relative to the float64 run's output."""
    if exact is None:
        return {}
    w = exact.double()[finite]
    power = _power(w)
    if not (power > 0.0 and math.isfinite(power)):
        return {}
    parts = {"floor": w.to(dtype).double() - w, "reference": a - w, "source": e - w}
    return {name: math.sqrt(_power(part) / power) for name, part in parts.items()}


def _power(values: torch.Tensor) -> float:
    return float(values.square().sum())


def _rms_ulp(values: torch.Tensor, dtype: torch.dtype) -> float:
    """Return the energy of one rounding, whose error is even within half a unit."""
    return _power(half_ulp(values, dtype)) / 3.0


def _at(hit_ratio: float, shares: torch.Tensor) -> float:
    """Return the largest share, leaving aside those that need not be within."""
    shares = torch.where(shares.isnan(), 0.0, shares)
    if hit_ratio >= 1.0:
        return float(shares.max())
    place = max(math.ceil(hit_ratio * shares.numel()), 1)
    return float(shares.kthvalue(place).values)
