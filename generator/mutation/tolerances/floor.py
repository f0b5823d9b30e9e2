"""Compute the tolerance that correct outputs need, from their errors in one case.

The share of an elementwise bound is the largest |a - e| / (atol + rtol·|e|) of all
elements or, with a hit ratio, of those that have to be within the bound. NMSE is an
energy: an error ten times as large has a hundred times the NMSE, so that the share of an
NMSE bound is the square root of the ratio.

The last rounding needs no safety margin: it is at most half a unit in the last place,
whatever the exact value. So an error is split into what one rounding may cause and the
rest, the arithmetic error, which may be larger for other inputs, other hardware and
other orders of summation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from generator.mutation.tolerances.result import LEAST, PROPOSED, Measured
from kernel_judge.comparison.tolerance import Tolerance

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
    """Return what `actual`, the reference's output, needs to pass.

    `roundings` is 1 against an oracle, whose output is not rounded, and 2 against a
    kernel: two correct outputs may then be neighbours. `exact` is the float64 run's
    output of the same elements. Returns None if no expected element is finite and not
    zero.
    """
    of_all = _ShareSums()
    size = _CHUNK if tolerance.hit_ratio >= 1.0 else max(actual.numel(), 1)
    flat = [actual.reshape(-1), expected.reshape(-1)]
    # what rows allow follows from whole rows, all else from the elements of a chunk
    rows = replace(tolerance, atol=0.0, rtol=0.0)
    of_rows = rows.allowed(expected.double()) if tolerance.of_row else None
    if of_rows is None:
        of_rows = torch.zeros_like(expected)
    flat.append(of_rows.reshape(-1))
    flat += [] if exact is None else [exact.reshape(-1)]
    for parts in zip(*(torch.split(values, size) for values in flat), strict=True):
        of_all.add(parts, tolerance, roundings)
    if of_all.power == 0.0:
        return None
    nmse = of_all.error / of_all.power
    once = roundings * of_all.once / of_all.power
    if roundings > 1:
        # two roundings of the same value need not differ at all
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
class _ShareSums:
    """Sum squares, and keep the largest shares, over chunks that fit a CPU cache.

    Sums of squares of the exact output, of one rounding of it, and of its distance to
    the reference and to the source, are `exact`, `rounded`, `reference` and `source`.
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
        """Add a chunk of both sides, of what rows allow, and of an exact output if known."""
        dtype = parts[0].dtype
        wide = [part.double() for part in parts]
        finite = wide[0].isfinite() & wide[1].isfinite()
        if not bool(finite.all()):
            wide = [part[finite] for part in wide]
        a, e, of_rows = wide[:3]
        if not e.numel():
            return
        half = half_ulp(e, dtype)
        error = (a - e).abs()
        beyond = (error - roundings * half).clamp_min(0.0)
        bound = tolerance.atol + tolerance.rtol * e.abs() + of_rows
        self.elements += e.numel()
        self.power += _power(e)
        self.error += _power(error)
        self.once += _power(e.to(dtype).double() - e)
        # the variance of an error that is uniform within half a unit
        self.even += _power(half) / 3.0
        self.bound += _power(bound)
        for times, share in self.shares.items():
            needed = roundings * half + times * beyond
            times_bound = _at(tolerance.hit_ratio, needed / bound)
            self.shares[times] = max(share, times_bound)
            if times == LEAST:
                fixed = tolerance.rtol * e.abs() + of_rows
                rest = _at(tolerance.hit_ratio, needed - fixed)
                self.atol = max(self.atol, rest)
        for w in wide[3:]:
            self.exact += _power(w)
            self.rounded += _power(w.to(dtype).double() - w)
            self.reference += _power(a - w)
            self.source += _power(e - w)

    def errors(self) -> dict[str, float]:
        """Return floor and errors, relative to the exact output if it is known."""
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
    """Return half a unit in the last place of `dtype` at float64 values, 0 at zeros.

    Of integers it is 0 as well: nobody rounds to them.
    """
    if not dtype.is_floating_point:
        return torch.zeros_like(value)
    about = torch.finfo(dtype)
    exponent = torch.frexp(value)[1] - 1
    unit = torch.ldexp(torch.full_like(value, about.eps), exponent)
    return torch.where(value == 0, 0.0, unit.clamp_min(about.eps * about.tiny) / 2)


def _power(values: torch.Tensor) -> float:
    return float(values.square().sum())


def _at(hit_ratio: float, shares: torch.Tensor) -> float:
    """Return the largest share of the elements that have to be within the bound."""
    shares = torch.where(shares.isnan(), 0.0, shares)
    if hit_ratio >= 1.0:
        return float(shares.max())
    place = max(math.ceil(hit_ratio * shares.numel()), 1)
    return float(shares.kthvalue(place).values)
