"""Find tolerances that are too loose or too tight, and propose others.

All definitions of an op_type share the tolerance of an output against a source. The
definition and case that need most decide. The elementwise bound and the NMSE bound are
judged separately: the first detects a few wrong elements, the second a small error
throughout.

Too tight is judged against every source: a bound with room for less than three times
the arithmetic error seen will raise a false alarm. Too loose is judged against the
oracle alone, whose result is unique: no implementation needs more than the references
do. A bound against a kernel covers all kernels of that provider, and a recording shows
one of them, of one version, on one GPU.

A dtype's default that does not fit is an error. An override is a warning: its reason
may be an analysis that covers more than the cases do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from generator.mutation.tolerances.result import (
    LEAST,
    MOST,
    ORACLE,
    PROPOSED,
    Floors,
    Measured,
    SourceFloor,
)
from generator.problems import Problem, Severity
from generator.problems.messages import one_line
from kernel_judge.comparison.tolerance import Tolerance

LOOSE, TIGHT = "tolerance-loose", "tolerance-tight"
OFF = "float64-disagrees"
IDS = (LOOSE, TIGHT, OFF)
# of an output's root mean square: far above float64's rounding, and above the 2e-9 that
# torch's softplus drops above its threshold; far below any defect
FURTHEST = 1e-8
# the distance from 1 to the next number
_EPS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}
_Figure = Callable[[Measured], float]


@dataclass(frozen=True)
class JudgedTolerance:
    """One tolerance with all rows judged by it, at least one."""

    tolerance: Tolerance
    rows: tuple[SourceFloor, ...]

    @property
    def first(self) -> SourceFloor:
        """Return the first row: all have its op_type, output, source and dtype."""
        return self.rows[0]

    def worst(self, figure: _Figure) -> tuple[float, SourceFloor, Measured]:
        """Return the largest value of a figure, with its row and case."""
        figures = ((figure(case), row, case) for row in self.rows for case in row.cases)
        return max(figures, key=lambda one: one[0])

    @property
    def multiple(self) -> float:
        """Return the elementwise bound as a multiple of what is needed."""
        return _inverse(self.worst(lambda case: case.share)[0])

    @property
    def nmse_multiple(self) -> float | None:
        """Return the same of NMSE, as a ratio of errors; None if it is not bounded."""
        if not self.tolerance.nmse:
            return None
        return _inverse(self.worst(lambda case: case.energy)[0])


def judged_tolerances(results: Sequence[Floors]) -> list[JudgedTolerance]:
    """Return the measured tolerances, each with its rows.

    Without the rows of outputs that disagree with the oracle in float64: the error of a
    wrong reference is not what correct outputs need.
    """
    groups: dict[tuple[str, str, str, Tolerance, str], list[SourceFloor]] = {}
    for result in results:
        for row in result.rows:
            is_off = result.off.get(row.output, 0.0) > FURTHEST
            if row.tolerance is not None and row.cases and not is_off:
                key = (row.op_type, row.output, row.source, row.tolerance, row.dtype)
                groups.setdefault(key, []).append(row)
    # the oracle before other sources
    order = sorted(groups, key=lambda key: (key[:2], key[2] != ORACLE, key[2]))
    return [JudgedTolerance(key[3], tuple(groups[key])) for key in order]


def problems(results: Sequence[Floors]) -> list[Problem]:
    """Return the tolerances that don't fit, and references that the oracle refutes."""
    paths = {result.definition: result.path for result in results}
    misfits = [
        _disagreement(result, output, off)
        for result in results
        for output, off in result.off.items()
        if off > FURTHEST
    ]
    for bound in judged_tolerances(results):
        row = bound.first
        is_oracle = row.source == ORACLE
        nmse = bound.nmse_multiple
        if bound.worst(lambda case: case.least)[0] > 1.0:
            misfits.append(_problem(bound, TIGHT, False, paths))
        elif is_oracle and bound.multiple > MOST:
            misfits.append(_problem(bound, LOOSE, False, paths))
        if nmse is None or bound.tolerance.nmse is None:
            continue
        if bound.worst(lambda case: case.least_nmse)[0] > bound.tolerance.nmse:
            misfits.append(_problem(bound, TIGHT, True, paths))
        elif is_oracle and nmse > MOST:
            misfits.append(_problem(bound, LOOSE, True, paths))
    return misfits


def proposed(bound: JudgedTolerance, rule: str, nmse: bool) -> Tolerance:
    """Return the tolerance with another bound, rounded up to one digit.

    In place of a bound that is too loose: room for PROPOSED times the arithmetic error,
    with an rtol of at least the dtype's rounding. In place of one that is too tight:
    room for LEAST times, the minimum, through atol, since errors that are large
    relative to their element are left over from larger terms that cancel.
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
    """Return a tolerance as short text: `8e-03 + 1e-02·|e|, NMSE 2e-05`."""
    text = f"{tolerance.atol:.2g} + {tolerance.rtol:.2g}·|e|"
    if tolerance.of_row:
        text += f" + {tolerance.of_row:.2g}·row's RMS"
    if tolerance.nmse is not None:
        text += f", NMSE {tolerance.nmse:.2g}"
    if tolerance.hit_ratio < 1.0:
        text += f", {100.0 * tolerance.hit_ratio:.4g} % of elements"
    return text


def rounded_up(value: float) -> float:
    """Return the next larger number of one significant digit: 4e-06 for 3.2e-06."""
    if not (value > 0.0 and math.isfinite(value)):
        return value
    scale = 10.0 ** math.floor(math.log10(value))
    # a number of one digit but for its last bits stays as it is
    return float(f"{math.ceil(value / scale - 1e-9) * scale:.0e}")


def _rounding(row: SourceFloor) -> float:
    roundings = 1 if row.source == ORACLE else 2
    return rounded_up(roundings * _EPS.get(row.dtype, 0.0) / 2)


def _problem(
    bound: JudgedTolerance, rule: str, nmse: bool, paths: dict[str, str]
) -> Problem:
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
        finding = f"is {times:.3g} times the needed bound, more than {MOST:g} times"
    else:
        finding = (
            f"is {times:.3g} times the needed bound: it leaves less than {LEAST:g} times "
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
            f"{row.op_type} {row.output!r} against {row.source}: {what}{reason} {finding} "
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
            f"in float64, {output!r} is {off:.1e} of its size away from the oracle: more "
            f"than rounding explains ({result.definition})",
            500,
        ),
        fix="Find out which side is wrong: the reference, or the op's oracle.",
    )


def _inverse(share: float) -> float:
    return 1.0 / share if share > 0.0 else math.inf
