"""Cases that are longer than limits of kernels, at a low price: their slices repeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kernel_judge.definition import LIMITS, Case


def past_limits(
    axis: str, rows: int, params: Mapping[str, Any] | None = None, /, **axes: int
) -> Case:
    """Return the case whose `rows` along an axis are more than a power of two.

    61 of them are distinct; `axes` are the others, `params` the case's.
    """
    longer = {**axes, axis: rows}
    return Case("past-limits", LIMITS, longer, params or {}, repeats=axis)


def lengthened(case: Case, axis: str, length: int) -> Case:
    """Return the case that crosses limits as another one would of a longer axis."""
    return past_limits(axis, length, case.params, **case.axes)


def rows_past_limits(axis: str, width: int) -> list[Case]:
    """Return the cases of more than 8,192 rows, and of short ones of 64 times as many.

    A row is a token, or a head of one.
    """
    limits = [past_limits(axis, 8_219)]
    if width <= 512:
        limits.append(replace(past_limits(axis, 262_171), name="far-past-limits"))
    return limits
