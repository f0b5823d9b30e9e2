"""Judge a reference's output against an expected one.

Structure and shape first, then dtype, then whether non-finite values agree, then the
metrics against the tolerance. Every bound is tested as `not value <= bound`, so that
NaN fails.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from kernel_judge.comparison.metrics import Metrics, blocks, measure, unmeasurable
from kernel_judge.comparison.signed_error import DEVIATIONS
from kernel_judge.comparison.tolerance import Tolerance

PASSED, FAILED, ERROR = "PASSED", "FAILED", "ERROR"
# two outputs count as proportional where 1 - |cosine| is below this
PROPORTIONAL = 1e-5
# and beside wrong elements where a factor leaves less than this share of the error's power:
# a few wrong columns move the least-squares factor too, which explains nothing of them
UNEXPLAINED = 0.25


@dataclass(frozen=True)
class Comparison:
    """The verdict on one output, the findings, and the figures.

    `verdict` is PASSED, FAILED, or ERROR where the check itself would prove nothing.
    `figures` are those of a policy that compares otherwise than element by element;
    `where` is an error_map, of a comparison that failed or where one was asked for.
    """

    verdict: str
    findings: tuple[str, ...]
    tolerance: Tolerance | None = None
    metrics: Metrics | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    where: Mapping[str, Any] | None = None

    @property
    def passed(self) -> bool:
        """Return whether the output agrees."""
        return self.verdict == PASSED

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict and the figures as plain JSON values."""
        metrics = self.metrics.as_dict() if self.metrics else {}
        return {
            "verdict": self.verdict,
            "findings": list(self.findings),
            **metrics,
            **self.figures,
            **({} if self.where is None else {"where": self.where}),
        }

    def message(self, subject: str) -> str:
        """Return the findings as lines for a person, below a line on `subject`."""
        lines = [f"{subject}: {self.verdict}", *self.findings]
        if self.metrics is not None and not self.passed:
            lines.append(self.metrics.summary())
            lines.append("the worst elements:")
            worst = self.metrics.worst
            lines += [f"  {w}" for w in worst if w.actual != w.expected]
        return "\n  ".join(lines)


def compare(
    actual: object,
    expected: object,
    tolerance: Tolerance,
    *,
    same_dtype: bool = False,
    names_allowed: bool = True,
) -> Comparison:
    """Return the verdict on `actual` held against `expected`, tensors of one shape.

    `same_dtype` asks for one dtype too; that of a float64 oracle says nothing. Structure
    and shape are compared first, then where NaN and infinities are, then the figures.
    Without `names_allowed` what passes has no worst elements within the tolerance.
    """
    if not isinstance(tolerance, Tolerance):
        raise TypeError("tolerance is Tolerance(rtol=…, atol=…) or what bounds() gives")

    def stop(finding: str) -> Comparison:
        return Comparison(FAILED, (finding,), tolerance)

    if not isinstance(actual, torch.Tensor):
        return stop(f"a tensor is expected, got {type(actual).__name__}")
    if not isinstance(expected, torch.Tensor):
        return stop(f"a tensor was to be expected, not {type(expected).__name__}")
    if actual.shape != expected.shape:
        return stop(f"shape {list(actual.shape)}, expected {list(expected.shape)}")
    if same_dtype and actual.dtype != expected.dtype:
        return stop(f"dtype {actual.dtype}, expected {expected.dtype}")
    if why := unmeasurable(actual) or unmeasurable(expected):
        return stop(why)
    metrics = measure(actual, expected, tolerance, names_allowed=names_allowed)
    if metrics.elements < actual.numel() and (why := non_finite(actual, expected)):
        return stop(why)
    result = _judge_figures(metrics, tolerance)
    unnamed = not (names_allowed or result.passed or metrics.worst)
    return compare(actual, expected, tolerance) if unnamed else result


def _judge_figures(metrics: Metrics, tolerance: Tolerance) -> Comparison:
    if metrics.expected_rms == 0.0:
        # nothing but zeros is expected: any atol would accept noise as agreement
        return _judge_zeros(metrics, tolerance)
    of_row = tolerance.of_row
    if metrics.elements and tolerance.atol > (1.0 - of_row) * metrics.expected_rms:
        more = f" and {of_row:g} of the RMS" if of_row else ""
        finding = (
            f"vacuous: atol {tolerance.atol:g}{more} exceeds the RMS of the expected output, "
            f"{metrics.expected_rms:.3g}; zeros would pass"
        )
        return Comparison(ERROR, (finding,), tolerance, metrics)
    findings = tuple(_exceeded(metrics, tolerance))
    return Comparison(FAILED if findings else PASSED, findings, tolerance, metrics)


def mismatch(actual: object, expected: object, tolerance: Tolerance) -> str:
    """Return where an element is beyond the tolerance, empty where `compare` must say.

    It stops at the first block that has one, and has no figures: enough for whoever asks
    only whether a comparison fails.
    """
    if not (isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor)):
        return ""
    if actual.shape != expected.shape or tolerance.hit_ratio != 1.0:
        return ""
    for a, e, first in blocks(actual.detach(), expected.detach().to(actual.device)):
        beyond = (a - e).abs() > tolerance.allowed(e)
        if bool(beyond.any()):
            at = int(beyond.flatten().nonzero()[0])
            there, wanted = (float(x.flatten()[at]) for x in (a, e))
            return f"beyond the tolerance: {there:.9g} for {wanted:.9g} at place {first + at}"
    return ""


def _judge_zeros(metrics: Metrics, tolerance: Tolerance) -> Comparison:
    if metrics.max_abs == 0.0:
        return Comparison(PASSED, (), tolerance, metrics)
    finding = f"zeros are expected, the largest value is {metrics.max_abs:.6g}"
    return Comparison(FAILED, (finding,), tolerance, metrics)


def non_finite(actual: torch.Tensor, expected: torch.Tensor) -> str | None:
    """Return how the NaN and infinities disagree; NaN in either always does."""
    a, e = actual.detach().double(), expected.detach().double().to(actual.device)
    for name, tensor in (("actual", a), ("expected", e)):
        count = int(torch.isnan(tensor).sum())
        if count:
            return f"{name} has NaN in {count} of {tensor.numel()} elements"
    either = torch.isinf(a) | torch.isinf(e)
    differ = either & (a != e)
    count = int(differ.sum())
    if not count:
        return None
    index = tuple(differ.nonzero()[0].tolist())
    return (
        f"infinities disagree in {count} of {a.numel()} elements, first at {index}: "
        f"actual {float(a[index]):.9g}, expected {float(e[index]):.9g}"
    )


def _exceeded(metrics: Metrics, tolerance: Tolerance) -> list[str]:
    findings = _bounds_exceeded(metrics, tolerance)
    # one factor throughout is a missing scale, or a logarithm of another base
    if (findings and _is_factor(metrics)) or (
        not findings and tolerance.bias is not None
    ):
        findings += _signed(metrics, tolerance.bias or 0.0)
    return findings


def _is_factor(metrics: Metrics) -> bool:
    """Return whether the least-squares factor is nearly all of the error."""
    off = metrics.factor - 1.0
    left = max(1.0 - metrics.cosine**2, 0.0) * metrics.norm_ratio**2
    return left <= UNEXPLAINED * (left + off * off)


def _signed(metrics: Metrics, bias: float) -> list[str]:
    """Return the finding about errors that have a sign, if any: a factor, or an offset."""
    off, explained = metrics.factor - 1.0, bias + DEVIATIONS * metrics.factor_noise
    if not abs(off) <= explained:
        throughout = abs(metrics.cosine) > 1.0 - PROPORTIONAL
        hint = ", which is ln 2" if abs(metrics.factor - math.log(2.0)) < 1e-3 else ""
        return [
            (
                f"actual is {metrics.factor:.{_digits(off)}g} times expected"
                f"{' throughout' if throughout else ' on the whole'}{hint}; errors without a "
                f"sign explain 1 ± {explained:.2g}"
            )
        ]
    mean = metrics.mean_error
    of_mean = bias * metrics.expected_rms + DEVIATIONS * metrics.mean_noise
    if not abs(mean) <= of_mean:
        return [
            (
                f"actual is {abs(mean):.3g} {'above' if mean > 0 else 'below'} expected in the "
                f"mean; errors without a sign explain ± {of_mean:.2g}"
            )
        ]
    return []


def _digits(off: float) -> int:
    """Return the digits that show a factor's distance from 1."""
    return 5 if not 0.0 < abs(off) < 1e-2 else 3 - math.floor(math.log10(abs(off)))


def _bounds_exceeded(metrics: Metrics, tolerance: Tolerance) -> list[str]:
    findings = []
    if not metrics.hit_ratio >= tolerance.hit_ratio:
        share = 100.0 * metrics.mismatched / max(metrics.elements, 1)
        worst = metrics.worst[0]
        allowed = tolerance.atol + tolerance.rtol * abs(worst.expected)
        of_row = tolerance.of_row
        more = f", and {of_row:g} of the RMS of its row" if of_row else ""
        findings.append(
            f"mismatched elements: {metrics.mismatched} / {metrics.elements} "
            f"({share:.1f}%), allowed {100.0 * (1.0 - tolerance.hit_ratio):.1f}%; "
            f"the worst at {worst}, allowed "
            f"{tolerance.atol:g} + {tolerance.rtol:g}·|expected| = {allowed:.3g}{more}"
        )
    if tolerance.nmse is not None and not metrics.nmse <= tolerance.nmse:
        findings.append(f"NMSE {metrics.nmse:.3g}, allowed {tolerance.nmse:g}")
    if tolerance.cosine is not None and not metrics.cosine >= tolerance.cosine:
        findings.append(f"cosine {metrics.cosine:.6f}, at least {tolerance.cosine:g}")
    if tolerance.norm_ratio is not None:
        low, high = tolerance.norm_ratio
        if not low <= metrics.norm_ratio <= high:
            findings.append(
                f"norm ratio {metrics.norm_ratio:.6f}, allowed {low:g} to {high:g}"
            )
    return findings
