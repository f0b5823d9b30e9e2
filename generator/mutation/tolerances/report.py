"""Report of measured floors: a table, and a page that explains it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from generator.mutation.report import shortened
from generator.mutation.tolerances.judge import (
    FURTHEST,
    LOOSE,
    OFF,
    TIGHT,
    JudgedTolerance,
    judged_tolerances,
    written,
)
from generator.mutation.tolerances.result import LEAST, MOST, PROPOSED, Floors
from generator.problems import Problem, Severity, error, has_errors
from generator.problems.messages import plural
from generator.reports import printed
from generator.reports.report import (
    Conclusion,
    Report,
    Row,
    Section,
    Status,
    Table,
)
from generator.reports.search_page import search_page

_PREFACE = f"""\
Written by `trace-dataset audit --tolerances --all --output`. Don't edit.

A tolerance has to let every right answer pass, and nothing more. What right answers need
is measured here: each reference is run as written and once more in float64. That is the
same `run()` under a mode that turns float32 into float64 wherever it is created or cast
to (`generator/mutation/tolerances/widened.py`), no second implementation. Inputs keep their values.
What the definition itself rounds to 16 or 8 bits in the middle stays rounded; only the
last rounding, of the output, is left out, so that it can be told from the arithmetic.

**The floor** of an output is one rounding of the float64 result to the output's dtype:
no answer in that dtype can be nearer on average. It is a root mean square, relative to
that of the output: about 1.7e-03 for bfloat16, 2.1e-04 for float16, 2.5e-08 for float32.

## How to read the tables

| column | meaning |
|---|---|
| floor | as above |
| reference | the error of the reference as written against float64, in floors |
| source's | that of the oracle or of the production kernel, as recorded on a GPU, in floors |
| allowed | what the tolerance allows in all, in floors: the root mean square of the elementwise bound or, where that is less, NMSE's |
| tolerance | an element may be off by atol + rtol·\\|e\\|; and NMSE |
| bound x | how many times what was needed the elementwise bound is, at the element that comes nearest to its own bound |
| NMSE x | the same of NMSE, as errors: the root of the ratio, since NMSE is an energy |
| neediest | the definition and the case that take most of the tolerance |

A row stands for all definitions of the op_type that are under that tolerance. A multiple
of 1 is no narrow escape where the output's own rounding is what takes the bound: half a
unit in the last place is never exceeded, so it needs no room (against a kernel a whole
unit: both sides round, and right answers may be neighbours). Of a bfloat16 output held
against float64, an rtol of 4e-03 is as tight as a bound can be, since half a unit is
2^-8 = 3.9e-03 of a value just above a power of two.

Sums of integers and moved data are compared exactly, samples and chosen tokens by their
law: these have no floor. Large weights are run in float64 on shorter axes; their small
cases are measured on the whole ones as well, where a source's error is the one against
the reference.

## What is a problem

- `tolerance-tight`: after the rounding that is certain, less than {LEAST:g} times the
  arithmetic error that was seen is left. Another seed, GPU or order of summation is
  going to fail. Judged against every source.
- `tolerance-loose`: more than {MOST:g} times what was needed. Judged against the oracle
  alone: there is one right answer to it, and what all references need is all that anybody
  needs. A bound against a kernel is a contract with all kernels of that provider, and a
  recording shows one, of one version, on one GPU: its looseness says nothing.
- `float64-disagrees`: the float64 run is more than {FURTHEST:g} of an output off the
  oracle. No rounding explains that: one of the two computes something else, and no
  tolerance is judged by it.

The elementwise bound and NMSE are judged each by itself: the first sees a few wrong
elements, the second a small error throughout, and neither makes up for the other. The
unit is the bound, not the definition: what is needed is what the neediest definition
needs in its neediest case. Proposed is what leaves {PROPOSED:g} times the arithmetic error in
place of a bound that is too loose, and {LEAST:g} times, the least that fits, in place of one
that is too tight; rounded up to one digit, and never less than the dtype's own rounding.

A dtype's default that does not fit is an error, and the command exits 1. A bound that an
op gives itself stands beside its reason, often an analysis of the worst inputs that may
be far above what the cases show, or a GPU's: that is a warning, listed and no failure."""

_COLUMNS = (
    *("op_type", "output", "source", "floor", "reference", "source's", "allowed"),
    *("tolerance", "bound x", "NMSE x", "neediest"),
)
_WORDS = ("op_type", "output", "source", "tolerance", "neediest")
_LEAST = ("op_type", "tolerances", "least bound x", "output", "source", "neediest")
_OF_ONE = ("definition", "output", "source", *_COLUMNS[3:7], *_COLUMNS[8:10])

RULES = (
    error(f"""{TIGHT}: A tolerance leaves less than {LEAST:g} times the arithmetic error
        seen.
        Fix: Widen the bound to the value that is proposed, with the reason beside it.
        Finds: an rtol of 1e-4 for a bfloat16 output"""),
    error(f"""{LOOSE}: A tolerance is more than {MOST:g} times what right answers need.
        Fix: Narrow the bound to the value that is proposed.
        Finds: an rtol of 0.5 for a bfloat16 output"""),
    error(f"""{OFF}: A reference run in float64 is further off the oracle than rounding
        explains.
        Fix: Find out which side is wrong: the reference, or the op's oracle.
        Finds: an eps of 1e-5 where the oracle has 1e-6"""),
)


def tolerances_report(
    results: Sequence[Floors], against: Sequence[Problem], *, is_page: bool = False
) -> Report:
    """Return the report of what was measured; a page has every definition too."""
    failed = [result for result in results if result.error]
    counts = [sum(p.severity is s for p in against) for s in Severity]
    summary = (
        f"{plural(len(results), 'definition')}, {len(failed)} not measured: "
        f"{plural(counts[0], 'error')}, {plural(counts[1], 'warning')}"
    )
    status = Status.FAILED if failed or has_errors(against) else Status.PASSED
    table = Table(list(_rows(results)), _COLUMNS, words=_WORDS, keys=3)
    tables = [table, Table(list(_remarks(results)))]
    return Report(
        title="How precise an answer can be, and must be",
        command="trace-dataset audit --tolerances",
        conclusion=Conclusion(status, summary),
        payload={
            "definitions": [result.as_dict() for result in results],
            "problems": [problem.as_dict() for problem in against],
        },
        sections=[Section("The table", tables)] if is_page else (),
        problems=against,
        details=list(_definitions(results)) if is_page else [Section("", tables)],
        rules={"tolerances": RULES},
        preface=_PREFACE if is_page else "",
        is_page=is_page,
        is_said=True,
    )


def tolerances_pages(
    results: Sequence[Floors], against: Sequence[Problem], stem: str
) -> dict[str, str]:
    """Return a summary in Markdown and all rows in HTML, by the names of their files.

    The summary has every error; warnings are counted.
    """
    page, rows = f"{stem}.md", f"{stem}.html"
    whole = tolerances_report(results, against, is_page=True)
    columns = ("severity", "rule", "what", "fix")
    problems = [Row((p.severity.value, p.rule, p.message, p.fix)) for p in against]
    errors = [row for row in problems if row.cells[0] == Severity.ERROR.value]
    listed = Section("Problems", [Table(problems, columns)])
    counts = Counter(p.rule for p in against if p.severity is not Severity.ERROR)
    warnings = ", ".join(f"{n} {rule}" for rule, n in sorted(counts.items())) or "none"
    preface = (
        f"[{rows}]({rows}) has a row for each tolerance and for each definition under it, "
        f"and each problem, with a search. Warnings: {warnings}."
    )
    least = Table([*_least(results)], _LEAST, words=(_LEAST[0], *_LEAST[3:]))
    sections = [Section("The narrowest of each op_type", [least], preface=preface)]
    if errors:
        sections.append(Section("Errors", [Table(errors, columns, columns)]))
    summary = replace(whole, sections=sections, details=(), rules={}, problems=())
    return {
        page: "".join(printed(summary, "markdown")),
        rows: search_page(replace(whole, sections=[*whole.sections, listed]), page),
    }


def _least(results: Sequence[Floors]) -> Iterator[Row]:
    """Yield for each op_type how many bounds it has, and the narrowest of them."""
    by_op: dict[str, list[JudgedTolerance]] = {}
    for bound in judged_tolerances(results):
        by_op.setdefault(bound.first.op_type, []).append(bound)
    for op_type, bounds in by_op.items():
        least = min(bounds, key=lambda bound: bound.multiple)
        _, worst, case = least.worst(lambda case: case.used)
        whose = f"{worst.definition}, {case.case}"
        figures = str(len(bounds)), _times(least.multiple)
        yield Row((op_type, *figures, least.first.output, least.first.source, whose))


def _rows(results: Sequence[Floors]) -> Iterator[Row]:
    """Yield a row for each output, source and tolerance; those without floor last."""
    for bound in judged_tolerances(results):
        row = bound.first
        _, worst, case = bound.worst(lambda case: case.used)
        names = (row.op_type, f"{row.output} ({row.dtype})", row.source)
        figures = (*_floors(bound), written(bound.tolerance), *_multiples(bound))
        neediest = f"{worst.definition}, {case.case}"
        yield Row((*names, *figures, neediest))
    without = {
        (row.op_type, row.output, row.source, row.why_none)
        for result in results
        for row in result.rows
        if row.why_none
    }
    for *whom, why in sorted(without):
        yield Row((*whom, *["-"] * 4, why, "-", "-", "-"))


def _floors(bound: JudgedTolerance) -> tuple[str, str, str, str]:
    """Return the floor, and what is measured in floors.

    They are of the neediest case that has a floor: where all values are exact in the
    output's dtype, there is nothing to count in.
    """
    cases = [c for row in bound.rows for c in row.cases if c.floor > 0.0]
    case = max(cases, key=lambda c: c.used, default=None)
    if case is None:
        return "0", "-", "-", "-"
    reference = case.reference
    return (
        f"{case.floor:.1e}",
        "-" if reference is None else _times(reference / case.floor),
        _times(case.source / case.floor),
        _times(case.allowed / case.floor),
    )


def _multiples(bound: JudgedTolerance) -> tuple[str, str]:
    nmse = bound.nmse_multiple
    return _times(bound.multiple), "-" if nmse is None else _times(nmse)


def _times(value: float) -> str:
    """Return a multiple: two digits are all that a measured maximum is worth."""
    if math.isinf(value) or value > 1e6:
        return "> 1e6"
    return f"{value:.2f}" if value < 10.0 else f"{value:.0f}"


def _remarks(results: Sequence[Floors]) -> Iterator[Row]:
    """Yield what was left out or shortened, and how far float64 is from the oracle."""
    for result in results:
        name = result.definition
        if result.error:
            yield Row((name, f"not measured: {result.error}"), Status.FAILED)
        if result.left_out:
            yield Row((name, f"left out: {'; '.join(result.left_out)}"))
    how = "in float64 on shorter axes; small cases of the whole without it"
    for cells in shortened(((r.op_type, r.reduced) for r in results), how):
        yield Row(cells)
    off = [(value, r.definition, n) for r in results for n, value in r.off.items()]
    if off:
        worst, definition, name = max(off)
        differ = f"float64 runs and oracles differ by {worst:.1e} of an output at most"
        yield Row((differ, f"{name} of {definition}"))


def _definitions(results: Sequence[Floors]) -> Iterator[Section]:
    """Yield a folded table for each op_type, a row for each definition and bound."""
    count = plural(len(results), "definition")
    yield Section("Each definition", (), preface=f"{count}; columns as above.")
    for op_type in dict.fromkeys(result.op_type for result in results):
        of_op = [result for result in results if result.op_type == op_type]
        rows = [
            Row((result.definition, *names, *_floors(bound), *_multiples(bound)))
            for result in of_op
            for bound in judged_tolerances([result])
            for names in [(bound.first.output, bound.first.source)]
        ]
        if rows:
            title = f"{op_type}, {plural(len(of_op), 'definition')}"
            table = Table(rows, _OF_ONE, words=_OF_ONE[:3], keys=3)
            yield Section(title, [table], is_open=False)
