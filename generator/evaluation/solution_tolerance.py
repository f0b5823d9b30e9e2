"""Tolerances of solutions: the widest that a kernel of the op is held to.

References keep closer to float64 than kernels, which round intermediate values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernel_judge.checks.available import source_name
from kernel_judge.checks.pairs import ORACLE
from kernel_judge.comparison.tolerance import Tolerance, looser
from kernel_judge.definition import Case
from kernel_judge.subject import Subject

REFERENCE = "reference"
"""What is expected where there is no oracle: the reference's outputs."""


def solution_tolerance(
    subject: Subject, output: str, source: str, case: Case
) -> Tolerance:
    """Return how far an output may be from what `source`, oracle or reference, gives.

    A kernel's tolerance has room for two errors, the kernel's and the reference's to
    which it is compared. An oracle has none: the reference's is taken off.
    """
    strict = allowed = subject.tolerance(output, ORACLE, case)
    for kernel in _kernels(subject):
        allowed = looser(allowed, _inverted(subject.tolerance(output, kernel, case)))
    if source != ORACLE or allowed.hit_ratio < 1.0:
        return allowed
    rtol = max(strict.rtol, allowed.rtol - strict.rtol)
    atol = max(strict.atol, allowed.atol - strict.atol)
    of_row = max(strict.of_row, allowed.of_row)
    # of two sides that round alike it is less than of one that rounds
    nmse = None if allowed.nmse is None else max(allowed.nmse, strict.nmse or 0.0)
    return replace(allowed, rtol=rtol, atol=atol, nmse=nmse, of_row=of_row)


def whose_tolerance(subject: Subject, output: str, case: Case) -> str:
    """Return the kernel whose tolerance a solution has, `the reference` where none is wider."""
    widest, whose = subject.tolerance(output, ORACLE, case), "the reference"
    for kernel in _kernels(subject):
        wider = looser(widest, _inverted(subject.tolerance(output, kernel, case)))
        if wider != widest:
            widest, whose = wider, kernel
    return whose


def doubled(tolerance: Tolerance) -> Tolerance:
    """Return the bounds between two sides that are each as far off as `tolerance`."""
    nmse = None if tolerance.nmse is None else 4.0 * tolerance.nmse
    return Tolerance(
        2.0 * tolerance.rtol,
        2.0 * tolerance.atol,
        nmse,
        max(0.0, 2.0 * tolerance.hit_ratio - 1.0),
        None if tolerance.cosine is None else 2.0 * tolerance.cosine - 1.0,
        None
        if tolerance.norm_ratio is None
        else (tolerance.norm_ratio[0] ** 2, tolerance.norm_ratio[1] ** 2),
        of_row=2.0 * tolerance.of_row,
    )


def _inverted(tolerance: Tolerance) -> Tolerance:
    """Invert the bounds of a norm's ratio: tests divide the reference's by the kernel's.

    The judge divides a solution's by the reference's.
    """
    if tolerance.norm_ratio is None:
        return tolerance
    low, high = tolerance.norm_ratio
    return replace(tolerance, norm_ratio=(1.0 / high, 1.0 / low))


def _kernels(subject: Subject) -> Iterator[str]:
    for provider in subject.kernels:
        for backend in subject.backends(provider):
            yield source_name(provider, backend)
