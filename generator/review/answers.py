"""Answers of the points of the checklist."""

from __future__ import annotations

from typing import NamedTuple

YES, NO, UNKNOWN = "yes", "no", "unknown"
ADVICE = "advice"
"""Answers a point that is not met and that the dataset does not require."""

CLAIMED = "only the change itself says so: "


class PointFinding(NamedTuple):
    """An answer, where it was seen, and whether an unknown one takes a GPU to tell.

    A claim of the change counts whether or not the dataset requires the point.
    """

    answer: str
    seen: str
    needs_gpu: bool = False
    is_claim: bool = False
