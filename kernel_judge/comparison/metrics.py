"""Distances between two tensors, measured in float64."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from kernel_judge.comparison.signed_error import SignedSums
from kernel_judge.comparison.tolerance import EXACT, Tolerance

WORST = 5


@dataclass(frozen=True)
class Deviation:
    """One of the worst elements: where it is and both values."""

    index: tuple[int, ...]
    actual: float
    expected: float

    def __str__(self) -> str:
        """Return the element as text, such as `(0, 3): actual 1, expected 2, …`."""
        return (
            f"{self.index}: actual {self.actual:.9g}, expected {self.expected:.9g}, "
            f"difference {self.actual - self.expected:.6g}"
        )


@dataclass(frozen=True)
class Metrics:
    """Every figure of one comparison, over the elements that are finite in both.

    `nmse` is Σ(a-e)²/Σe², `norm_ratio` |a|/|e|, `hit_ratio` the share of elements within
    the tolerance. Where the expected values are all zero, nmse is 0 if the actual ones
    are too, else infinite.

    `factor` is the least-squares factor Σae/Σe² of a = factor·e, `mean_error` the mean of
    a - e with its sign; `factor_noise` and `mean_noise` are the standard deviations that
    errors without a sign explain (`signed_error`).
    """

    elements: int
    mismatched: int
    max_abs: float
    mean_abs: float
    max_rel: float
    mean_rel: float
    nmse: float
    cosine: float
    norm_ratio: float
    hit_ratio: float
    expected_rms: float
    expected_mean: float
    mse: float
    factor: float
    factor_noise: float
    mean_error: float
    mean_noise: float
    worst: tuple[Deviation, ...]

    def summary(self) -> str:
        """Return the figures of the whole as a line for a person."""
        return (
            f"of {self.elements} elements: mean {self.expected_mean + self.mean_error:.6g}, "
            f"expected {self.expected_mean:.6g}; MSE {self.mse:.3g}; cosine "
            f"{self.cosine:.6g}; factor {self.factor:.6g}; "
            f"mean error {self.mean_error:.3g}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON values."""
        return {**vars(self), "worst": [{**vars(one)} for one in self.worst]}


def measure(
    actual: torch.Tensor,
    expected: torch.Tensor,
    tolerance: Tolerance = EXACT,
    *,
    names_allowed: bool = True,
) -> Metrics:
    """Return the metrics of two tensors of one shape, of any dtype; float64 inside.

    Mismatched are the elements beyond what the tolerance allows each; `names_allowed`
    has others too among the worst. `compare` judges those that are not finite in both.
    Raises ValueError for another shape, and for what has no real numbers.
    """
    if why := unmeasurable(actual) or unmeasurable(expected):
        raise ValueError(why)
    if actual.shape != expected.shape:
        raise ValueError(f"shape {[*actual.shape]}, expected {[*expected.shape]}")
    if actual.is_cuda and actual.numel() <= _FEW:
        actual, expected = actual.cpu(), expected.cpu()
    sums = _BlockSums(names_allowed or not actual.is_floating_point())
    for a, e, first in blocks(actual.detach(), expected.detach().to(actual.device)):
        sums.add(a, e, tolerance, first)
    if not actual.is_floating_point() and not expected.is_floating_point():
        # float64 merges integers above 2^53
        there, wanted = actual.detach(), expected.detach().to(actual.device)
        close = (there.double() - wanted.double()).abs() == 0.0
        exact = tolerance.allowed(wanted.double()) == 0.0
        sums.mismatched += int((close & exact & (there != wanted)).sum())
    return sums.metrics(actual, expected)


CODES = ("torch.bits", "torch.float4", "torch.q")
"""Beginnings of dtypes whose values torch does not convert."""


def unmeasurable(tensor: torch.Tensor) -> str | None:
    """Return why a tensor has no real numbers to measure, None where it has."""
    kind = "nested" if tensor.is_nested else tensor.layout
    codes = tensor.is_complex() or str(tensor.dtype).startswith(CODES)
    if kind is torch.strided and not (tensor.is_meta or codes):
        return None
    return (
        f"no dense tensor of real numbers: {tensor.dtype}, {kind}, on {tensor.device}"
    )


_HALVES = (torch.bfloat16, torch.float16)
_BLOCK, _GPU_BLOCK, _FEW = 1 << 15, 1 << 24, 1 << 18
"""Elements of a block: in a core's cache on a CPU. A GPU's few are compared on a CPU."""


def blocks(
    actual: torch.Tensor, expected: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor, int]]:
    """Return both as float64 by blocks of whole rows, and the place of the first element."""
    width = actual.shape[-1] if actual.dim() > 1 else 1
    shape = (-1, width) if actual.dim() > 1 and width else (-1,)
    a, e = actual.reshape(shape), expected.reshape(shape)
    most = _GPU_BLOCK if a.is_cuda else _BLOCK
    rows = max(most // max(width, 1), 1)
    for first in range(0, len(a), rows):
        part = slice(first, first + rows)
        yield _double(a[part]), _double(e[part]), first * width


def _double(values: torch.Tensor) -> torch.Tensor:
    """Return values as float64; of halves by float32, which is exact and sooner there."""
    return (values.float() if values.dtype in _HALVES else values).double()


class _BlockSums:
    """Sum the figures of a comparison, block by block."""

    def __init__(self, names_allowed: bool) -> None:
        self._least = -math.inf if names_allowed else 0.0
        self.elements = self.mismatched = 0
        self._largest = self._largest_relative = 0.0
        self._error = self._relative = self._expected = 0.0
        self._error_power = self._power = self._actual_power = self._both = 0.0
        self._signed = SignedSums()
        self._worst: list[tuple[float, int, float, float]] = []

    def add(
        self, a: torch.Tensor, e: torch.Tensor, tolerance: Tolerance, first: int
    ) -> None:
        """Add a block of float64 whose first element has a place."""
        signed = a - e
        total, count = float(e.sum()), a.numel()
        of_rows = signed.sum(dim=-1)
        if not math.isfinite(total + float(of_rows.sum())):
            finite = torch.isfinite(a) & torch.isfinite(e)
            count = int(finite.sum())
            if count < a.numel():
                zero = a.new_zeros(())
                a, e = torch.where(finite, a, zero), torch.where(finite, e, zero)
                signed = a - e
                of_rows = signed.sum(dim=-1)
            total = float(e.sum())
        error, size = signed.abs(), e.abs()
        excess = torch.sub(error, tolerance.allowed(e))
        most = float(excess.max())
        if not most <= 0.0:
            self.mismatched += int((excess > 0.0).sum())
        # 0 / tiny where nothing is expected and nothing is amiss
        relative = error / size.clamp_min_(torch.finfo(torch.float64).tiny)
        self.elements += count
        self._largest = max(self._largest, float(error.max()))
        self._largest_relative = max(self._largest_relative, float(relative.max()))
        self._error += float(error.sum())
        self._relative += float(relative.sum())
        self._expected += total
        self._actual_power += _dot(a, a)
        self._both += _dot(a, e)
        power, error_power = self._signed.add(signed, e, of_rows)
        self._power += power
        self._error_power += error_power
        least = self._worst[-1][0] if len(self._worst) == WORST else self._least
        if most > least:
            self._keep_worst(a, e, excess, first)

    def metrics(self, actual: torch.Tensor, expected: torch.Tensor) -> Metrics:
        """Return the figures of all blocks."""
        count, power = self.elements, self._power
        every = max(count, 1)
        factor, mean = self._signed.result(
            unit_roundoff(actual.dtype), lambda: _finite(actual, expected)
        )
        return Metrics(
            elements=count,
            mismatched=self.mismatched,
            max_abs=self._largest,
            mean_abs=self._error / every,
            max_rel=self._largest_relative,
            mean_rel=self._relative / every,
            nmse=_ratio(self._error_power, power, both_zero=0.0),
            cosine=_ratio(
                self._both,
                math.sqrt(power) * math.sqrt(self._actual_power),
                both_zero=1.0 if power == self._actual_power else 0.0,
            ),
            norm_ratio=_ratio(
                math.sqrt(self._actual_power), math.sqrt(power), both_zero=1.0
            ),
            hit_ratio=1.0 - self.mismatched / every,
            expected_rms=math.sqrt(power / every),
            expected_mean=self._expected / every,
            mse=self._error_power / every,
            factor=1.0 + factor.off,
            factor_noise=factor.deviation,
            mean_error=mean.off,
            mean_noise=mean.deviation,
            worst=tuple(
                Deviation(unravel(place, tuple(actual.shape)), a, e)
                for _, place, a, e in self._worst
            ),
        )

    def _keep_worst(
        self, a: torch.Tensor, e: torch.Tensor, excess: torch.Tensor, first: int
    ) -> None:
        flat, worst = excess.reshape(-1), self._worst
        values, places = torch.topk(flat, min(WORST, flat.numel()))
        of_both = [t.reshape(-1)[places].tolist() for t in (a, e)]
        at = (places + first).tolist()
        worst += zip(values.tolist(), at, *of_both, strict=True)
        worst.sort(key=lambda one: -one[0])
        del worst[WORST:]


def _finite(actual: torch.Tensor, expected: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return a - e and e as float64, zero where either is not finite."""
    a, e = actual.detach().double(), expected.detach().double().to(actual.device)
    finite = torch.isfinite(a) & torch.isfinite(e)
    return torch.where(finite, a - e, 0.0), torch.where(finite, e, 0.0)


def unit_roundoff(dtype: torch.dtype) -> float:
    """Return the greatest relative error of one rounding to a dtype; 0 of integers."""
    return torch.finfo(dtype).eps / 2.0 if dtype.is_floating_point else 0.0


def _dot(first: torch.Tensor, second: torch.Tensor) -> float:
    return float(first.reshape(-1).dot(second.reshape(-1)))


def _ratio(numerator: float, denominator: float, both_zero: float) -> float:
    if denominator == 0.0:
        return both_zero if numerator == 0.0 else math.inf
    return numerator / denominator


def unravel(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of an element by its place in row-major order."""
    index = []
    for length in reversed(shape):
        position, rest = divmod(position, length)
        index.append(rest)
    return tuple(reversed(index))
