"""The evidence of a dataset in short: counts of each op_type, and what stands out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from generator.reports import printed
from generator.reports.report import Report, Row, Section, Table
from generator.reports.search_page import search_page
from generator.results.audits import SURVIVED, TIMED_OUT
from generator.results.sources import is_ground_truth, is_kernel, is_model
from generator.results.verification import AuditLine, Verification, agreed
from generator.results.verification_report import verification_report

_COUNTS = "op_type|definitions|kernel|layer|oracle alone|nothing|model|defects|timed out|survived"
_COUNTS_PREFACE = (
    "How many definitions of each op_type agree with a production kernel, else with a "
    "PyTorch layer of SGLang, else with the oracle alone, or with nothing, as they are "
    "now; with the model that runs them, in transformers; and the defects that the audit "
    "planted in their references, with those that timed out and that survived."
)
_EXCEPTIONS = ("op_type", "what", "definitions")


def verification_pages(
    table: Verification, stem: str = "verification"
) -> dict[str, str]:
    """Return the summary in Markdown and all rows in HTML, by the names of their files."""
    page, rows = f"{stem}.md", f"{stem}.html"
    return {
        page: "".join(printed(verification_page(table, rows), "markdown")),
        rows: search_page(verification_report(table), page),
    }


def verification_page(table: Verification, rows: str) -> Report:
    """Return the summary of `verification_report`; `rows` is the page that has its rows."""
    whole = verification_report(table)
    runs, architectures = whole.sections[:2]
    (places,) = architectures.tables
    live = {row.cells[0]: row.cells[2:] for row in places.rows}
    lines = [Row((*row.cells, *live[row.cells[0]])) for row in _counts(table)]
    columns = (*_COUNTS.split("|"), *places.columns[2:])
    counts = Section(
        "Evidence of each op_type",
        [Table(lines, columns, words=("op_type",))],
        preface=f"{_COUNTS_PREFACE} Last: {architectures.preface}",
    )
    exceptions = [*_exceptions(table)]
    shown = Table(exceptions, _EXCEPTIONS, words=_EXCEPTIONS)
    left = Section(
        "What stands out",
        [shown] if exceptions else [],
        preface="" if exceptions else "Nothing.",
    )
    preface = (
        f"{whole.preface} [{rows}]({rows}) has a row for each definition and what it was "
        "compared with, and each audit, with a search."
    )
    return replace(whole, sections=[runs, counts, left], preface=preface)


def _definitions(table: Verification) -> dict[str, list[str]]:
    """Return op_type → its definitions, in the order of the lines."""
    named: dict[str, dict[str, None]] = {}
    for line in table.lines:
        named.setdefault(line.op_type, {})[line.definition] = None
    return {op_type: [*names] for op_type, names in named.items()}


def _counts(table: Verification) -> Iterator[Row]:
    sources = agreed(table.lines)
    passed = [x for x in table.lines if x.verdict == "PASSED" and not x.stale]
    models = {x.definition for x in passed if is_model(x.source)}
    audits: dict[str, list[AuditLine]] = {}
    for audit in table.audits:
        audits.setdefault(audit.op_type, []).append(audit)
    for op_type, names in _definitions(table).items():
        kernel = sum(any(map(is_kernel, sources.get(n, ()))) for n in names)
        truth = sum(any(map(is_ground_truth, sources.get(n, ()))) for n in names)
        some = sum(n in sources for n in names)
        known = [line.current for line in audits.get(op_type, ()) if line.current]
        counts = (
            len(names),
            kernel,
            truth - kernel,
            some - truth,
            len(names) - some,
            len(models.intersection(names)),
            sum(audit.defects for audit in known),
            sum(audit.counts[TIMED_OUT] for audit in known),
            sum(audit.counts[SURVIVED] for audit in known),
        )
        yield Row((op_type, *map(str, counts)))


def _exceptions(table: Verification) -> Iterator[Row]:
    """Yield failures one by one, and of each op_type what is stale or lacks a kernel."""
    for line in table.failed:
        what = f"{line.verdict} against {line.source}: {line.note}"
        yield Row((line.op_type, what, line.definition))
    sources = agreed(table.lines)
    truths = {name for name, of in sources.items() if any(map(is_ground_truth, of))}
    stale = set(table.stale)
    survived = {
        line.definition
        for line in table.audits
        if line.current and line.current.survived
    }
    for op_type, names in _definitions(table).items():
        for what, such in (
            ("compared with nothing", [n for n in names if n not in sources]),
            ("the oracle alone", [n for n in names if n in sources.keys() - truths]),
            ("evidence of another text", [n for n in names if n in stale]),
            ("a planted defect survived", [n for n in names if n in survived]),
        ):
            if such:
                yield Row((op_type, what, _listed(such)))


def _listed(names: Iterable[str], most: int = 12) -> str:
    listed = [*names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return f"{', '.join(listed[:most])}{more}"
