"""Bounds that follow from the arithmetic of a kernel, for a test of any project.

An output is a sum of `terms` products, accumulated in one dtype, of which some values on
the way are rounded, and which is rounded at the end. With u the unit roundoff of a dtype:

- rounding the output is at most u·|y|, of each side that is rounded;
- a value on the way that a whole output is multiplied by (a norm's root) is off by at most
  u·|y|. Of one that each term has its own (a softmax's weight), the errors add up as their
  squares: u/√3 of the sum's RMS, and at most u·|y| where one term is nearly all of it;
- a sum of n terms in order rounds n partial sums. The j-th is a random walk, √(j/n) of the
  RMS of the whole, about the line to the sum's own value, j/n·|y|: u/√3·√(n/2) =
  u·√(n/6) of the RMS, and u/√3·√(n/3) = u·√n/3 of |y| (Higham and Mary 2019, doi
  10.1137/18M1226312, have the bound √n·u for errors of independent sign; the constants
  are those of a uniform error and of partial sums that grow). Other orders round less.

What adds up as squares has a normal law. The largest of so many elements is within λ
standard deviations but with a probability of `alarms`: λ = √(2·ln(2·elements/alarms)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import torch

from kernel_judge.comparison.compare import Comparison, compare
from kernel_judge.comparison.metrics import CODES, unit_roundoff, unmeasurable
from kernel_judge.comparison.tolerance import DEFAULTS, Tolerance
from kernel_judge.comparison.tolerance import EXACT as STRICT

ALARMS = 1e-6
"""How often a right kernel fails one comparison, at most."""
ELEMENTS = 2**20
KERNEL, EXACT = "kernel", "exact"


@dataclass(frozen=True)
class Bounds(Tolerance):
    """A tolerance with the lines that derive it, a quantity each."""

    derivation: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the bounds and how they follow, as lines for a person."""
        head = (
            f"|a - e| <= {self.atol:.3g} + {self.rtol:.3g}·|e|, NMSE <= {self.nmse:.3g}"
        )
        return "\n  ".join([head, *self.derivation])


def bounds(
    *,
    dtype: str | torch.dtype,
    accumulate: str | torch.dtype = "float32",
    terms: int = 1,
    rounded: int = 0,
    rounded_whole: int = 0,
    rounded_to: str | torch.dtype | float | None = None,
    scale: float = 1.0,
    elements: int = ELEMENTS,
    against: str = EXACT,
    alarms: float = ALARMS,
) -> Bounds:
    """Derive the bounds of a kernel's output from its arithmetic.

    Args:
        dtype: the output's dtype, as torch's or by its name.
        accumulate: the dtype in which the sum is accumulated.
        terms: how many terms one element sums up, the reduction's length.
        rounded: how often each term is rounded on the way.
        rounded_whole: how many values are rounded by which a whole output is multiplied.
        rounded_to: the dtype of both, or its unit roundoff, such as 1/4 of float4_e2m1;
            the output's dtype by default.
        scale: the RMS of the expected output, in the output's unit.
        elements: how many elements are compared.
        against: `exact`, an expected output in float64 or float32; `kernel`, one that
            another kernel made with the same arithmetic, so that both sides round.
        alarms: the probability at most that a right kernel fails.

    Returns:
        rtol, atol in the output's unit, NMSE and the bound of signed errors, with the
        lines that derive them. atol above `scale` would let zeros pass: `compare` then
        says so and fails.

    Raises:
        ValueError: a dtype that is no floating-point one, or a number that is none of
            its quantity.
    """
    out, total = _dtype(dtype), _dtype(accumulate)
    numbers = terms, elements, rounded, rounded_whole
    if not all(isinstance(n, Integral) and n < 2**63 for n in numbers):
        raise ValueError("terms, elements and what is rounded are whole numbers < 2^63")
    if min(terms, elements) < 1 or min(rounded, rounded_whole) < 0:
        raise ValueError(
            "terms and elements are at least 1, what is rounded at least 0"
        )
    are_numbers = all(isinstance(number, Real) for number in (alarms, scale))
    if not (are_numbers and 0.0 < alarms < 1.0 and 0.0 < scale < math.inf):
        raise ValueError("alarms is a number in (0, 1), scale one above 0, and finite")
    if against not in (EXACT, KERNEL):
        raise ValueError(f"against is {EXACT!r} or {KERNEL!r}, not {against!r}")
    sides = 2 if against == KERNEL else 1
    u_out, u_sum = unit_roundoff(out), unit_roundoff(total)
    u_middle = u_out
    if isinstance(rounded_to, float):
        u_middle = rounded_to
    elif rounded_to is not None:
        u_middle = unit_roundoff(_dtype(rounded_to))
    deviations = math.sqrt(2.0 * math.log(2.0 * elements / alarms))
    # of the RMS of the output, as standard deviations of one side
    of_sum = u_sum * math.sqrt(terms / 6.0) if terms > 1 else 0.0
    of_own = u_sum * math.sqrt(terms) / 3.0 if terms > 1 else 0.0
    of_terms = u_middle * math.sqrt(rounded / 3.0)
    of_whole = sides * (u_out + rounded_whole * u_middle)
    grows = deviations * of_own * math.sqrt(sides)
    rtol = of_whole + sides * rounded * u_middle + grows
    spread = math.sqrt(sides * (of_sum**2 + of_terms**2))
    # half a step of the smallest numbers, which rtol does not cover
    floor = sides * torch.finfo(out).smallest_normal * u_out
    atol = deviations * spread * scale + floor
    # equal values are rounded alike, so that all may be off by the whole of it
    spread += of_own * math.sqrt(sides)
    nmse = (of_whole + spread * (1.0 + deviations / math.sqrt(elements))) ** 2
    name = str(out).removeprefix("torch.")
    bias = DEFAULTS[name].bias if name in DEFAULTS else None
    lines = [f"rounding of the output, {name}: {sides} times {u_out:.3g}·|e|"]
    if rounded or rounded_whole:
        lines.append(
            f"rounded on the way with {u_middle:.3g}: {rounded} of each term, "
            f"{of_terms:.3g} of the RMS and {sides * rounded * u_middle:.3g}·|e|; "
            f"{rounded_whole} of the whole, {sides * rounded_whole * u_middle:.3g}·|e|"
        )
    if terms > 1:
        lines.append(
            f"a sum of {terms} in {str(total)[6:]}, in order: {u_sum:.3g}·√({terms}/6) = "
            f"{of_sum:.3g} of the RMS, and {u_sum:.3g}·√{terms}/3 = {of_own:.3g}·|e|"
        )
    lines.append(
        f"{deviations:.2f} deviations: of {elements} elements one is beyond with a "
        f"probability of {alarms:g}; RMS {scale:.3g}"
    )
    return Bounds(rtol, atol, nmse, bias=bias, derivation=tuple(lines))


def assert_matches(
    actual: torch.Tensor,
    expected: torch.Tensor,
    tolerance: Tolerance | None = None,
    **arithmetic: Any,
) -> Comparison:
    """Assert that a kernel's output is the expected one, up to its arithmetic.

    `actual` and `expected` are tensors of one shape; `expected` may be wider, float64 at
    best. Without a `tolerance` integers and booleans are exact, and of others `bounds`
    derives it: `arithmetic` are its arguments, by default `actual`'s dtype, the RMS of
    what is expected as `scale`, and the number of `elements`. Returns the comparison, or
    raises AssertionError with the worst elements and the derivation; ValueError as `bounds`.
    """
    if tolerance is not None and arithmetic:
        raise ValueError(f"a tolerance or {', '.join(arithmetic)}: one of both")
    both = [t for t in (actual, expected) if isinstance(t, torch.Tensor)]
    are_numbers = len(both) == 2 and not any(map(unmeasurable, both))
    exact = are_numbers and not (arithmetic or actual.is_floating_point())
    if tolerance is None and are_numbers and not exact:
        finite = expected.detach().double()
        finite = finite[torch.isfinite(finite)]
        rms = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
        stated = {
            "dtype": actual.dtype,
            "scale": rms or 1.0,
            "elements": max(actual.numel(), 1),
        }
        tolerance = bounds(**{**stated, **arithmetic})
    comparison = compare(actual, expected, tolerance or STRICT, same_dtype=False)
    if not comparison.passed:
        derived = f"\n  {tolerance}" if tolerance else ""
        raise AssertionError(f"{comparison.message('the output')}{derived}")
    return comparison


def _dtype(name: str | torch.dtype) -> torch.dtype:
    dtype = getattr(torch, name, None) if isinstance(name, str) else name
    codes = str(dtype).startswith(CODES)
    if not isinstance(dtype, torch.dtype) or codes or not dtype.is_floating_point:
        raise ValueError(f"{name} is no floating-point dtype of torch")
    return dtype
