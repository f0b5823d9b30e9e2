"""What varies in the random cases of an audit, for ops on rows.

An op_type says it in `varied` of its module `audit`, a `Varied`: from a definition, one
of its cases, a stream of draws, and whether this round may differ in settings too, to
the axes and parameters of the random case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from generator.testing.definition import Case, Definition
from generator.testing.seeded_inputs import Stream

Variation = tuple[dict[str, int], dict[str, Any]]
Varied = Callable[[Definition, Case, Stream, bool], Variation]


def varied_rows(
    definition: Definition, case: Case, draw: Stream, other: bool
) -> Variation:
    """Return one to eight rows; the number of rows is a case's only axis."""
    (rows,) = case.axes
    return {rows: draw.integers(1, 9, 1)[0]}, dict(case.params)
