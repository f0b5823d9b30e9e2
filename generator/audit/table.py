"""The result of an audit as text: a table, and the survivors with their lines."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from generator.audit.result import (
    CAUGHT,
    EQUIVALENT,
    SURVIVED,
    TIMED_OUT,
    DefinitionResult,
    MutantResult,
)
from generator.wording import one_line, plural

_WIDTH = 160
_SHOWN_TESTS = 2
_COLUMNS = (CAUGHT, EQUIVALENT, SURVIVED, TIMED_OUT)


def table(results: Sequence[DefinitionResult]) -> str:
    """Return a row for each definition, and one of the totals."""
    totals = total(results)
    columns = {
        "definition": plural(len(results), "definition"),
        "mutants": str(sum(totals.values())),
        **{status: str(totals[status]) for status in _COLUMNS},
        "seconds": f"{sum(result.seconds for result in results):.1f}",
        "first caught by": _first_tests(results),
    }
    rows = [
        (
            one_line(result.definition),
            str(len(result.mutants)) if not result.error else "-",
            *(str(result.counts[status]) for status in _COLUMNS),
            f"{result.seconds:.1f}",
            _first_tests([result]) if not result.error else "not audited",
        )
        for result in results
    ]
    return text_table(columns, rows, words=("definition", "first caught by"))


def text_table(
    columns: Mapping[str, str], rows: Sequence[Sequence[str]], words: Sequence[str]
) -> str:
    """Return rows as text; columns are headings with totals, those of words to the left.

    There are no totals of one row.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_footer=len(rows) > 1)
    for name, footer in columns.items():
        made.add_column(
            name,
            footer=footer,
            justify="left" if name in words else "right",
            no_wrap=True,
            min_width=len(name),
        )
    for row in rows:
        made.add_row(*row)
    text = io.StringIO()
    # what a dataset says is no markup, and a file has no colours
    Console(file=text, width=_WIDTH, markup=False, highlight=False).print(made)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def total(results: Sequence[DefinitionResult]) -> dict[str, int]:
    """Return how many mutants of all definitions have each status."""
    return {
        status: sum(result.counts[status] for result in results) for status in _COLUMNS
    }


def remarks(results: Sequence[DefinitionResult]) -> Iterator[str]:
    """Yield what a reader of the table must know: what was left out or shortened."""
    for result in results:
        name = one_line(result.definition)
        if result.error:
            yield f"{name}: not audited: {one_line(result.error)}"
        for test in result.left_out:
            yield f"{name}: the reference itself does not pass {one_line(test)}"
    for axes, count in shortened((r.op_type, r.reduced) for r in results):
        yield (
            f"{axes} in {plural(count, 'definition')}: audited on shorter axes, "
            "without recordings"
        )


def shortened(
    reduced: Iterable[tuple[str, Mapping[str, int]]],
) -> Iterator[tuple[str, int]]:
    """Yield which axes of which op_type are shorter, and in how many definitions."""
    counts: dict[str, int] = {}
    for op_type, axes in reduced:
        if axes:
            told = ", ".join(f"{name}={length}" for name, length in axes.items())
            what = one_line(f"{op_type}: {told}")
            counts[what] = counts.get(what, 0) + 1
    yield from counts.items()


def survivors(results: Sequence[DefinitionResult]) -> Iterator[str]:
    """Yield each survivor: its name, and the line of the reference before and after."""
    for result in results:
        for mutant in result.survivors:
            yield from _lines(result.definition, mutant)


def _lines(definition: str, mutant: MutantResult) -> Iterator[str]:
    yield f"{one_line(definition)}: {one_line(mutant.name)}"
    if mutant.line:
        yield f"  - {mutant.line}: {one_line(mutant.before)}"
        yield f"  + {mutant.line}: {one_line(mutant.after)}"
    yield f"  {one_line(mutant.why)}"


def _first_tests(results: Sequence[DefinitionResult]) -> str:
    """Return the tests that caught most, `matches_oracle 87, raised 61`."""
    counts: dict[str, int] = {}
    for result in results:
        for test, count in result.first_tests.items():
            counts[test] = counts.get(test, 0) + count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{test} {count}" for test, count in ordered[:_SHOWN_TESTS])
