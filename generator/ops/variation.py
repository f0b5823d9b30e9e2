"""Random cases in the manner of a definition's own: other lengths, other draws.

The function `varied` of an op_type's module `audit`, a `Varied`, says how: from a definition, one
of its cases, a stream of draws, and whether this round may differ in settings too, to
the axes and parameters of the random case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from generator.ops.registry import optional_op_module
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

Variation = tuple[dict[str, int], dict[str, Any]]
Varied = Callable[[Definition, Case, Stream, bool], Variation]


def varied_rows(
    definition: Definition, case: Case, draw: Stream, other: bool
) -> Variation:
    """Return one to eight rows; the number of rows is a case's only axis."""
    (rows,) = case.axes
    return {rows: draw.integers(1, 9, 1)[0]}, dict(case.params)


def varied(
    definition: Definition, cases: Sequence[Case], number: int
) -> tuple[Case, Stream]:
    """Return the numbered random case, and the stream to make its inputs from.

    Its kind is that of the definition's cases in turn. What the op_type's module
    `audit` varies is drawn again, and in every second round its settings too; the rest
    of the case stays.
    """
    case = cases[number % len(cases)]
    stream = Stream(definition.name, case.name, f"audit {number}")
    vary: Varied | None = getattr(
        optional_op_module(definition.op_type, "audit"), "varied", None
    )
    if vary is not None:
        other = number // len(cases) % 2 == 1
        axes, params = vary(definition, case, stream.child("variation"), other)
        axes = {name: axes[name] for name in case.axes}
        case = replace(case, axes=axes, params=params)
    return case, stream
