"""A mutant: a reference with one defect."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """Hold a reference's text with one defect; `line` counts from 1.

    `name` says what and where and is the same in every run: it tells mutants of one
    reference apart. `before` and `after` are the line as it was and as it is.
    """

    name: str
    kind: str
    line: int
    before: str
    after: str
    source: str
