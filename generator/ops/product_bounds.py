"""Bounds of relations between products in bfloat16 whose elements are of about 1."""

from __future__ import annotations

from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.relation import Bound

SUMS_REORDERED = Bound(
    Tolerance(rtol=8e-3, atol=2e-4, nmse=1e-6),
    "float32 sums of elements of about 1 in another order; both sides round once, to "
    "neighbours at most: 2^-7, and that is rare",
)
PARTS_ADDED = Bound(
    Tolerance(rtol=4e-3, atol=3.2e-2, nmse=1e-5),
    "both parts and the whole are rounded to bfloat16, by 2^-8 of values up to 5; three "
    "such of 2.4e-6 (2^-8/sqrt(3)/1.44, squared), of which the parts have half the power",
)
