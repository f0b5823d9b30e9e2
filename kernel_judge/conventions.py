"""Other projects' criteria of agreement, to run beside `compare`.

Each function returns whether the output passes there, and the figure that decides. They
are written from the projects' documentation and behaviour, with their defaults.
"""

from __future__ import annotations

import math

import torch

from kernel_judge.comparison.compare import non_finite
from kernel_judge.comparison.metrics import measure


def assert_close(
    actual: torch.Tensor,
    expected: torch.Tensor,
    rtol: float | None = None,
    atol: float | None = None,
) -> tuple[bool, float]:
    """Return what `torch.testing.assert_close` decides, and the share of mismatches.

    The dtype of `expected` need not be that of `actual`, as with `check_dtype=False`.
    """
    try:
        torch.testing.assert_close(
            actual, expected, rtol=rtol, atol=atol, check_dtype=False
        )
    except AssertionError:
        passed = False
    else:
        passed = True
    if rtol is None or atol is None:
        return passed, math.nan
    return passed, _mismatched(actual, expected, rtol, atol)


def check_all_close(
    actual: torch.Tensor,
    expected: torch.Tensor,
    rtol: float = 1e-2,
    atol: float = 1e-2,
    tol_err_ratio: float = 0.05,
) -> tuple[bool, float]:
    """Return what aiter's `checkAllclose` logs, and the share of mismatches it returns.

    It fails above `tol_err_ratio` of the elements, and raises nothing: a test that
    drops what it returns passes whatever it is (ROCm/aiter#5030).
    """
    share = _mismatched(actual, expected, rtol, atol)
    return share <= tol_err_ratio, share


def share_within(
    actual: torch.Tensor,
    expected: torch.Tensor,
    rtol: float,
    atol: float,
    percent: float,
) -> tuple[bool, float]:
    """Return whether a share of elements is within a tolerance, and the share.

    So FlashInfer's tests of quantised kernels decide: `percent` of 0.95 asks for 95 %.
    """
    share = 1.0 - _mismatched(actual, expected, rtol, atol)
    return share >= percent, share


def nmse(
    actual: torch.Tensor, expected: torch.Tensor, max_nmse: float = 1e-7
) -> tuple[bool, float]:
    """Return whether Σ(a-e)²/Σe² is within a bound, and its value.

    So llama.cpp's test-backend-ops decides; its bound is 1e-7, of products of matrices
    5e-4. NaN fails, and so do infinities that one side alone has.
    """
    value = measure(actual, expected).nmse
    if non_finite(actual, expected):
        return False, math.nan
    return value <= max_nmse, value


def _mismatched(
    actual: torch.Tensor, expected: torch.Tensor, rtol: float, atol: float
) -> float:
    is_complex = actual.is_complex() or expected.is_complex()
    wide = torch.complex128 if is_complex else torch.float64
    a, e = actual.detach().to(wide), expected.detach().to(wide)
    close = torch.isclose(a, e, rtol=rtol, atol=atol)
    return float((~close).double().mean()) if close.numel() else 0.0
