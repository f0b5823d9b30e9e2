"""When other checkers call outputs right, written from their formulas; x is what a
solution returned, y what the reference did, each a tuple of tensors.

None of their code is here: each function states the rule that it follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

Outputs = Sequence[Any]
Formula = Callable[[Outputs, Outputs], bool]
_HALF = 1e-2


def flashinfer_bench(
    x: Outputs,
    y: Outputs,
    *,
    atol: float = 1e-2,
    rtol: float = 1e-2,
    ratio: float = 1.0,
) -> bool:
    """Follow the default rule of flashinfer-bench.

    Shape and dtype are the reference's; no infinity and no NaN is in x. An element is bad
    if both abs(x - y) > atol and abs(x - y) / (abs(y) + 1e-8) > rtol; the share of those
    that are not is `ratio` at least. So a finite x passes where y is infinite.
    """
    for a, b in _pairs(x, y):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        a, b = a.float(), b.float()
        if not bool(a.isfinite().all()):
            return False
        gap = (a - b).abs()
        bad = (gap > atol) & (gap / (b.abs() + 1e-8) > rtol)
        if a.numel() and 1.0 - int(bad.sum()) / a.numel() < ratio:
            return False
    return len(x) == len(y)


def sol_execbench(
    x: Outputs,
    y: Outputs,
    *,
    atol: float = 1e-2,
    rtol: float = 1e-2,
    ratio: float = 0.99,
    allow_negative_inf: bool = False,
) -> bool:
    """Follow the rule of SOL-ExecBench.

    Shape and dtype are the reference's. NaN or infinity on either side fails, but equal
    -inf passes with `allow_negative_inf`; so does an x of zeros alone where y is not.
    An element is bad if abs(x - y) > atol + rtol * abs(y); `ratio` are not.
    """
    for a, b in _pairs(x, y):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        a, b = a.float(), b.float()
        if allow_negative_inf:
            same = (a == b) & (b == -torch.inf)
            a, b = a.masked_fill(same, 0.0), b.masked_fill(same, 0.0)
        if not bool(a.isfinite().all() and b.isfinite().all()):
            return False
        if bool((b != 0).any()) and not bool((a != 0).any()):
            return False
        bad = (a - b).abs() > atol + rtol * b.abs()
        if a.numel() and 1.0 - int(bad.sum()) / a.numel() < ratio:
            return False
    return len(x) == len(y)


def kernelbench(x: Outputs, y: Outputs) -> bool:
    """Follow the rule of KernelBench.

    The shapes are equal, and torch.allclose(y, x, t, t) holds: abs(y - x) is within
    t + t * abs(x), t being 1e-4 in float32 and 1e-2 in shorter floats. Another dtype
    raises there.
    """
    for a, b in _pairs(x, y):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        allowed = 1e-4 if a.dtype == torch.float32 else _HALF
        if a.is_floating_point() and a.dtype.itemsize == 1:
            a, b = a.float(), b.float()
        if not torch.allclose(b, a, rtol=allowed, atol=allowed):
            return False
    return len(x) == len(y)


def gpu_mode(x: Outputs, y: Outputs, *, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
    """Follow `verbose_allclose` of GPU MODE's tasks, and its defaults.

    The shapes are equal; NaN and both infinities lie in the same places. No element has
    abs(x - y) > atol + rtol * abs(y) in float32. The dtype is not looked at.
    """
    for a, b in _pairs(x, y):
        if a.shape != b.shape:
            return False
        a, b = a.float(), b.float()
        for kind in (torch.isnan, torch.isposinf, torch.isneginf):
            if not torch.equal(kind(a), kind(b)):
                return False
        finite = b.isfinite()
        if bool(((a - b).abs() > atol + rtol * b.abs())[finite].any()):
            return False
    return len(x) == len(y)


def _pairs(x: Outputs, y: Outputs) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield the outputs as tensors, a number as one without axes."""
    for a, b in zip(x, y, strict=False):
        yield torch.as_tensor(a), torch.as_tensor(b)
