"""The floors as text: a table for a terminal, and what a reader of it must know."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence

from generator.precision.judge import Bound, bounds, written
from generator.precision.result import Floors, Measured
from generator.wording import one_line, plural

COLUMNS = (
    "op_type",
    "output",
    "source",
    "floor",
    "reference",
    "source's",
    "allowed",
    "tolerance",
    "bound x",
    "NMSE x",
    "neediest",
)
# rows are not cut: what a terminal has no room for, it wraps
_WIDTH = 400
_WORDS = frozenset(("op_type", "output", "source", "tolerance", "neediest"))


def table(results: Sequence[Floors]) -> str:
    """Return a row for each output, source and tolerance of each op_type."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in COLUMNS:
        justify = "left" if name in _WORDS else "right"
        made.add_column(name, justify=justify, no_wrap=True, min_width=len(name))  # type: ignore[arg-type]
    for row in rows(results):
        made.add_row(*(one_line(cell, 120) for cell in row))
    text = io.StringIO()
    # what a dataset says is no markup, and a file has no colours
    Console(file=text, width=_WIDTH, markup=False, highlight=False).print(made)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def rows(results: Sequence[Floors]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row, as COLUMNS has them; those without floor last."""
    for bound in bounds(results):
        yield (*_names(bound), *figures(bound), _neediest(bound))
    for op_type, output, source, why in sorted(
        {
            (row.op_type, row.output, row.source, row.why_none)
            for result in results
            for row in result.rows
            if row.why_none
        }
    ):
        yield (op_type, output, source, *["-"] * 4, why, "-", "-", "-")


def figures(bound: Bound) -> tuple[str, ...]:
    """Return the floor, what is measured in floors, the tolerance and its multiples.

    They are of the neediest case that has a floor: where all values are exact in the
    output's dtype, there is nothing to count in.
    """
    cases = [c for row in bound.rows for c in row.cases if c.floor > 0.0]
    case = max(cases, key=lambda c: c.used, default=None)
    nmse = bound.nmse_multiple
    return (
        *(_in_floors(case) if case is not None else ("0", "-", "-", "-")),
        written(bound.tolerance),
        times(bound.multiple),
        "-" if nmse is None else times(nmse),
    )


def times(value: float) -> str:
    """Return a multiple: two digits are all that a measured maximum is worth."""
    if math.isinf(value) or value > 1e6:
        return "> 1e6"
    return f"{value:.2f}" if value < 10.0 else f"{value:.0f}"


def remarks(results: Sequence[Floors]) -> Iterator[str]:
    """Yield what was left out or shortened, and how far float64 is from the oracle."""
    for result in results:
        name = one_line(result.definition)
        if result.error:
            yield f"{name}: not measured: {one_line(result.error)}"
        if result.left_out:
            yield f"{name}: left out: {one_line('; '.join(result.left_out))}"
    shortened: dict[str, int] = {}
    for result in results:
        if result.reduced:
            axes = ", ".join(f"{k}={v}" for k, v in result.reduced.items())
            key = f"{result.op_type}: {axes}"
            shortened[key] = shortened.get(key, 0) + 1
    for axes, count in shortened.items():
        yield (
            f"{one_line(axes)} in {plural(count, 'definition')}: in float64 on shorter "
            "axes; small cases of the whole without it"
        )
    off = [(value, r.definition, n) for r in results for n, value in r.off.items()]
    if off:
        worst, definition, name = max(off)
        yield (
            f"float64 runs and oracles differ by {worst:.1e} of an output at most: "
            f"{one_line(name)} of {one_line(definition)}"
        )


def _names(bound: Bound) -> tuple[str, str, str]:
    row = bound.first
    return row.op_type, f"{row.output} ({row.dtype})", row.source


def _in_floors(case: Measured) -> tuple[str, str, str, str]:
    reference = case.reference
    return (
        f"{case.floor:.1e}",
        "-" if reference is None else times(reference / case.floor),
        times(case.source / case.floor),
        times(case.allowed / case.floor),
    )


def _neediest(bound: Bound) -> str:
    _, row, case = bound.worst(lambda case: case.used)
    return f"{row.definition}, {case.case}"
