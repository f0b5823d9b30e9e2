"""Which tolerances are too loose or too tight, and what they should be.

A bound is one for all definitions of an op_type whose output is held against a source
under it, so that what is needed is what the neediest of them needs, in its neediest
case. The elementwise bound and that of NMSE are judged each by itself: the one sees a
few wrong elements, the other a small error throughout.

Tight is judged against every source: a bound that leaves less than three times the
arithmetic error seen is a false alarm to come. Loose is judged against the oracle
alone. There is one right answer to it, so that what the references need is all that
anybody needs. A bound against a kernel is a contract with all kernels of that provider,
of which a recording shows one, of one version, on one GPU.

A default is an error where it does not fit. A bound that an op gives itself has a
reason beside it: somebody decided, by an analysis that may cover more than the cases
do. That is a warning, shown and no failure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from generator.precision.result import (
    LEAST,
    MOST,
    ORACLE,
    PROPOSED,
    Floors,
    Measured,
    Row,
)
from generator.problems import Problem, Severity
from generator.support.tolerance import Tolerance
from generator.wording import one_line

LOOSE, TIGHT = "tolerance-loose", "tolerance-tight"
OFF = "float64-disagrees"
IDS = (LOOSE, TIGHT, OFF)
# of an output's root mean square: far above what float64 rounds, and above 2e-9, which
# torch's softplus leaves out from its threshold on; far below any defect
FURTHEST = 1e-8
# steps of the numbers from 1 on
_EPS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}
_Figure = Callable[[Measured], float]


@dataclass(frozen=True)
class Bound:
    """Hold one tolerance with all rows that are under it; never none."""

    tolerance: Tolerance
    rows: tuple[Row, ...]

    @property
    def first(self) -> Row:
        """Return a row that says what the bound is about."""
        return self.rows[0]

    def worst(self, figure: _Figure) -> tuple[float, Row, Measured]:
        """Return the largest of a figure, with the row and the case that have it."""
        found = ((figure(case), row, case) for row in self.rows for case in row.cases)
        return max(found, key=lambda one: one[0])

    @property
    def multiple(self) -> float:
        """Return how many times what is needed the elementwise bound is."""
        return _inverse(self.worst(lambda case: case.share)[0])

    @property
    def nmse_multiple(self) -> float | None:
        """Return the same of NMSE, as errors; None where it is not bounded."""
        if not self.tolerance.nmse:
            return None
        return _inverse(self.worst(lambda case: case.energy)[0])


def bounds(results: Sequence[Floors]) -> list[Bound]:
    """Return the tolerances that were measured, each with its rows.

    What a wrong reference is off is not what right answers need.
    """
    found: dict[tuple[str, str, str, Tolerance, str], list[Row]] = {}
    for result in results:
        for row in result.rows:
            is_off = result.off.get(row.output, 0.0) > FURTHEST
            if row.tolerance is not None and row.cases and not is_off:
                key = (row.op_type, row.output, row.source, row.tolerance, row.dtype)
                found.setdefault(key, []).append(row)
    # the oracle's first
    order = sorted(found, key=lambda key: (key[:2], key[2] != ORACLE, key[2]))
    return [Bound(key[3], tuple(found[key])) for key in order]


def problems(results: Sequence[Floors]) -> list[Problem]:
    """Return what is wrong with the tolerances, and with references in float64."""
    paths = {result.definition: result.path for result in results}
    found = [
        _disagreement(result, output, off)
        for result in results
        for output, off in result.off.items()
        if off > FURTHEST
    ]
    for bound in bounds(results):
        row = bound.first
        is_oracle = row.source == ORACLE
        nmse = bound.nmse_multiple
        if bound.worst(lambda case: case.least)[0] > 1.0:
            found.append(_problem(bound, TIGHT, False, paths))
        elif is_oracle and bound.multiple > MOST:
            found.append(_problem(bound, LOOSE, False, paths))
        if nmse is None or bound.tolerance.nmse is None:
            continue
        if bound.worst(lambda case: case.least_nmse)[0] > bound.tolerance.nmse:
            found.append(_problem(bound, TIGHT, True, paths))
        elif is_oracle and nmse > MOST:
            found.append(_problem(bound, LOOSE, True, paths))
    return found


def proposed(bound: Bound, rule: str, nmse: bool) -> Tolerance:
    """Return the tolerance with another bound, rounded up to one digit.

    What is too loose leaves PROPOSED times the arithmetic error, and no rtol is below
    what roundings to the dtype take. What is too tight gets LEAST times, for nothing is
    widened further than it must be; by its atol, since errors that are large beside
    their own value are what is left of larger ones that cancel.
    """
    old = bound.tolerance
    if nmse and rule == TIGHT:
        needed = bound.worst(lambda case: case.least_nmse)[0]
        return replace(old, nmse=rounded_up(needed))
    if nmse:
        needed = bound.worst(lambda case: case.proposed_nmse)[0]
        return replace(old, nmse=rounded_up(needed))
    if rule == TIGHT:
        needed = bound.worst(lambda case: case.least_atol)[0]
        return replace(old, atol=max(rounded_up(needed), old.atol))
    factor = bound.worst(lambda case: case.proposed)[0]
    rtol = rounded_up(old.rtol * factor)
    if old.rtol > 0.0:
        rtol = max(rtol, _rounding(bound.first))
    return replace(old, rtol=rtol, atol=rounded_up(old.atol * factor))


def written(tolerance: Tolerance) -> str:
    """Return a tolerance in a few characters: `8e-03 + 1e-02·|e|, NMSE 2e-05`."""
    text = f"{tolerance.atol:.2g} + {tolerance.rtol:.2g}·|e|"
    if tolerance.nmse is not None:
        text += f", NMSE {tolerance.nmse:.2g}"
    if tolerance.hit_ratio < 1.0:
        text += f", {100.0 * tolerance.hit_ratio:.4g} % of elements"
    return text


def rounded_up(value: float) -> float:
    """Return the next number of one significant digit: 3.2e-06 gives 4e-06."""
    if not (value > 0.0 and math.isfinite(value)):
        return value
    scale = 10.0 ** math.floor(math.log10(value))
    # a digit that is there but for the last bits stays
    return float(f"{math.ceil(value / scale - 1e-9) * scale:.0e}")


def _rounding(row: Row) -> float:
    roundings = 1 if row.source == ORACLE else 2
    return rounded_up(roundings * _EPS.get(row.dtype, 0.0) / 2)


def _problem(bound: Bound, rule: str, nmse: bool, paths: dict[str, str]) -> Problem:
    used: _Figure
    least: _Figure
    if nmse:
        times = bound.nmse_multiple or math.inf
        used, least = (lambda case: case.energy), (lambda case: case.least_nmse)
        what = f"NMSE ≤ {bound.tolerance.nmse:g}"
    else:
        times = bound.multiple
        used, least = (lambda case: case.share), (lambda case: case.least)
        what = f"{bound.tolerance.atol:g} + {bound.tolerance.rtol:g}·|e|"
    _, row, case = bound.worst(used if rule == LOOSE else least)
    if rule == LOOSE:
        said = f"is {times:.3g} times what is needed, more than {MOST:g} times"
    else:
        said = (
            f"is {times:.3g} times what is needed: it leaves less than {LEAST:g} times "
            "the arithmetic error"
        )
    reason = " (chosen with a reason)" if row.chosen else " (the dtype's default)"
    where = f"{row.definition}, {case.case}"
    return Problem(
        rule=rule,
        severity=Severity.WARNING if row.chosen else Severity.ERROR,
        file=paths[row.definition],
        pointer="",
        message=one_line(
            f"{row.op_type} {row.output!r} against {row.source}: {what}{reason} {said} "
            f"({where})",
            500,
        ),
        fix=one_line(
            f"{written(proposed(bound, rule, nmse))} leaves "
            f"{PROPOSED if rule == LOOSE else LEAST:g} times the arithmetic error seen."
        ),
    )


def _disagreement(result: Floors, output: str, off: float) -> Problem:
    return Problem(
        rule=OFF,
        severity=Severity.ERROR,
        file=result.path,
        pointer="/reference",
        message=one_line(
            f"in float64, {output!r} is {off:.1e} of itself off the oracle: that is no "
            "rounding",
            500,
        ),
        fix="Find out which side is wrong: the reference, or the op's oracle.",
    )


def _inverse(share: float) -> float:
    return 1.0 / share if share > 0.0 else math.inf
