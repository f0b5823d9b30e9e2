"""How far two tensors are apart, measured in float64."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch

from kernel_judge.comparison.signed_error import signed_errors

WORST = 5


@dataclass(frozen=True)
class Deviation:
    """Hold one of the worst elements: where it is and both values."""

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
    """Hold every figure of one comparison, over the elements that are finite in both.

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
        return asdict(self)


def measure(
    actual: torch.Tensor, expected: torch.Tensor, rtol: float, atol: float
) -> Metrics:
    """Return the metrics of two tensors of one shape, of any dtype; float64 inside.

    Elements that are not finite in both count as mismatched only where they differ;
    `compare` has judged them before.
    """
    a, e = actual.detach().double(), expected.detach().double().to(actual.device)
    finite = torch.isfinite(a) & torch.isfinite(e)
    zero = torch.zeros((), dtype=torch.float64, device=a.device)
    count = int(finite.sum())
    if count < finite.numel():
        a, e = torch.where(finite, a, zero), torch.where(finite, e, zero)
    signed = a - e
    error, size = signed.abs(), e.abs()
    allowed = atol + rtol * size
    beyond = error > allowed
    if not actual.is_floating_point() and not expected.is_floating_point():
        # float64 merges integers above 2^53
        beyond |= (allowed == 0.0) & (actual != expected.to(actual.device))
    mismatched = int(beyond.sum())
    # 0 / tiny where nothing is expected and nothing is amiss
    relative = error / size.clamp_min(torch.finfo(torch.float64).tiny)
    error_power, power = _dot(error, error), _dot(e, e)
    actual_power = _dot(a, a)
    unit = _unit(actual.dtype)
    factor, mean = signed_errors(signed, e, unit)
    return Metrics(
        elements=count,
        mismatched=mismatched,
        max_abs=_largest(error),
        mean_abs=float(error.sum()) / max(count, 1),
        max_rel=_largest(relative),
        mean_rel=float(relative.sum()) / max(count, 1),
        nmse=_ratio(error_power, power, both_zero=0.0),
        cosine=_ratio(
            _dot(a, e),
            math.sqrt(power) * math.sqrt(actual_power),
            both_zero=1.0 if power == actual_power else 0.0,
        ),
        norm_ratio=_ratio(math.sqrt(actual_power), math.sqrt(power), both_zero=1.0),
        hit_ratio=1.0 - mismatched / max(count, 1),
        expected_rms=math.sqrt(power / max(count, 1)),
        expected_mean=float(e.sum()) / max(count, 1),
        mse=error_power / max(count, 1),
        factor=1.0 + factor.off,
        factor_noise=factor.deviation,
        mean_error=mean.off,
        mean_noise=mean.deviation,
        worst=_worst(a, e, error - allowed),
    )


def _unit(dtype: torch.dtype) -> float:
    """Return the greatest relative error of one rounding to a dtype; 0 of integers."""
    return torch.finfo(dtype).eps / 2.0 if dtype.is_floating_point else 0.0


def _dot(first: torch.Tensor, second: torch.Tensor) -> float:
    return float(first.reshape(-1).dot(second.reshape(-1)))


def _largest(values: torch.Tensor) -> float:
    return float(values.max()) if values.numel() else 0.0


def _ratio(numerator: float, denominator: float, both_zero: float) -> float:
    if denominator == 0.0:
        return both_zero if numerator == 0.0 else math.inf
    return numerator / denominator


def _worst(
    a: torch.Tensor, e: torch.Tensor, excess: torch.Tensor
) -> tuple[Deviation, ...]:
    flat = excess.reshape(-1)
    order = torch.topk(flat, min(WORST, flat.numel())).indices.tolist()
    flat_a, flat_e = a.reshape(-1), e.reshape(-1)
    return tuple(
        Deviation(
            _unravel(position, tuple(excess.shape)),
            float(flat_a[position]),
            float(flat_e[position]),
        )
        for position in order
    )


def _unravel(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for length in reversed(shape):
        position, rest = divmod(position, length)
        index.append(rest)
    return tuple(reversed(index))
