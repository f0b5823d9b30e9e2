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
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from generator.precision.result import LEAST, PROPOSED, Measured
from generator.support.tolerance import Tolerance

_CHUNK = 1 << 16


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
    of_all = _Sums()
    size = _CHUNK if tolerance.hit_ratio >= 1.0 else max(actual.numel(), 1)
    flat = [actual.reshape(-1), expected.reshape(-1)]
    flat += [] if exact is None else [exact.reshape(-1)]
    for parts in zip(*(torch.split(values, size) for values in flat), strict=True):
        of_all.add(parts, tolerance, roundings)
    if of_all.power == 0.0:
        return None
    nmse = of_all.error / of_all.power
    once = roundings * of_all.once / of_all.power
    if roundings > 1:
        # two answers that round the same value need not differ at all
        once = min(roundings * of_all.even / of_all.power, nmse)
    more = max(nmse - once, 0.0)
    allowed = math.sqrt(of_all.bound / of_all.power)
    energy = 0.0
    if tolerance.nmse:
        energy = math.sqrt(max(nmse, once) / tolerance.nmse)
        allowed = min(allowed, math.sqrt(tolerance.nmse))
    return Measured(
        case,
        of_all.elements,
        allowed,
        of_all.shares[1.0],
        energy,
        of_all.shares[LEAST],
        once + LEAST**2 * more,
        of_all.atol,
        of_all.shares[PROPOSED],
        once + PROPOSED**2 * more,
        **of_all.errors(),
    )


@dataclass
class _Sums:
    """Add up squares, and keep the largest shares, over parts that fit a cache.

    Of the exact output: its own, one rounding of it, its distance to the two others.
    """

    elements: int = 0
    power: float = 0.0
    error: float = 0.0
    once: float = 0.0
    even: float = 0.0
    bound: float = 0.0
    exact: float = 0.0
    rounded: float = 0.0
    reference: float = 0.0
    source: float = 0.0
    atol: float = 0.0
    shares: dict[float, float] = field(
        default_factory=lambda: dict.fromkeys((1.0, LEAST, PROPOSED), 0.0)
    )

    def add(
        self, parts: Sequence[torch.Tensor], tolerance: Tolerance, roundings: int
    ) -> None:
        """Add a part of both sides and, if there is one, of the exact output."""
        dtype = parts[0].dtype
        wide = [part.double() for part in parts]
        finite = wide[0].isfinite() & wide[1].isfinite()
        if not bool(finite.all()):
            wide = [part[finite] for part in wide]
        a, e = wide[:2]
        if not e.numel():
            return
        half = half_ulp(e, dtype)
        error = (a - e).abs()
        beyond = (error - roundings * half).clamp_min(0.0)
        bound = tolerance.atol + tolerance.rtol * e.abs()
        self.elements += e.numel()
        self.power += _power(e)
        self.error += _power(error)
        self.once += _power(e.to(dtype).double() - e)
        # an error that is as likely anywhere within half a unit
        self.even += _power(half) / 3.0
        self.bound += _power(bound)
        for times, share in self.shares.items():
            needed = roundings * half + times * beyond
            found = _at(tolerance.hit_ratio, needed / bound)
            self.shares[times] = max(share, found)
            if times == LEAST:
                rest = _at(tolerance.hit_ratio, needed - tolerance.rtol * e.abs())
                self.atol = max(self.atol, rest)
        for w in wide[2:]:
            self.exact += _power(w)
            self.rounded += _power(w.to(dtype).double() - w)
            self.reference += _power(a - w)
            self.source += _power(e - w)

    def errors(self) -> dict[str, float]:
        """Return floor and errors, relative to the exact output if there is one."""
        if not 0.0 < self.exact < math.inf:
            relative = {"floor": self.even, "source": self.error}
            power = self.power
        else:
            relative = {
                "floor": self.rounded,
                "source": self.source,
                "reference": self.reference,
            }
            power = self.exact
        return {name: math.sqrt(value / power) for name, value in relative.items()}


def half_ulp(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return half a unit in the last place of a dtype at float64 values; 0 at zeros."""
    about = torch.finfo(dtype)
    exponent = torch.frexp(value)[1] - 1
    unit = torch.ldexp(torch.full_like(value, about.eps), exponent)
    return torch.where(value == 0, 0.0, unit.clamp_min(about.eps * about.tiny) / 2)


def _power(values: torch.Tensor) -> float:
    return float(values.square().sum())


def _at(hit_ratio: float, shares: torch.Tensor) -> float:
    """Return the largest share, leaving aside those that need not be within."""
    shares = torch.where(shares.isnan(), 0.0, shares)
    if hit_ratio >= 1.0:
        return float(shares.max())
    place = max(math.ceil(hit_ratio * shares.numel()), 1)
    return float(shares.kthvalue(place).values)
