"""Audit sizes of vocabularies, and the ranges of their random cases."""

from __future__ import annotations

from collections.abc import Sequence

from generator.ops.axes import Axes
from generator.ops.op_types.sampling.cases import kind_of
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return more tokens than the 256 that a reference looks at first."""
    return {"vocab_size": 1100}


def tiny(axes: Axes) -> Axes:
    """Return more tokens than the candidates of a first look.

    What asks for more than there are is compared on the reduced axes.
    """
    return {"vocab_size": 600}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other filters, drawn from once."""
    kind = kind_of(definition)
    if not kind:
        return dict(case.axes), {**case.params, "calls": 1}
    rows = _filters(
        case.params["rows"], kind, "logits" in definition.interface.inputs, draw
    )
    axes = {**case.axes, "batch_size": sum(count for *_, count in rows)}
    return axes, {**case.params, "rows": rows, "calls": 1}


def _filters(
    rows: Sequence[tuple[str, int, float, int]], kind: str, softmax: bool, draw: Stream
) -> tuple[tuple[str, int, float, int], ...]:
    """Return as many kinds of rows under other filters, eight rows of each.

    No two tokens that may be kept are tied: which one stands first is free, and would
    make one law look like two. All of `steps` and, where k keeps 8, of `zeros` have
    sums that p can meet exactly.
    """
    cases = []
    for place in range(len(rows)):
        numbers = draw.child(str(place))
        name = ("steps", "zeros", "zipf")[place % 3]
        # the tokens behind the first 12 of `steps`, and the 7th and 8th of `zeros`,
        # are tied: p leaves those out
        fewest, most = {
            "steps": (1, 12),
            "zeros": (8, 12) if "top_p" in kind else (1, 6),
            "zipf": (-1, 24),
        }[name]
        p = numbers.integers(-1, 65 if name == "zipf" else 60, 1)[0] / 64
        # and beside a sum by less than bfloat16 has
        p += numbers.child("beside").integers(-1, 2, 1)[0] / 4096
        if kind == "min_p":
            p = min(max(p, 0.0), 1.0)
        if softmax:
            # either side of a sum that only rounding tells from p is right
            p += 1 / 8192
        cases.append((name, numbers.integers(fewest, most + 1, 1)[0], p, 8))
    return tuple(cases)
