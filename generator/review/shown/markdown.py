"""The review as Markdown for a comment: bounded, and nothing of the dataset is markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from generator.problems import Problem, Severity
from generator.reports import Style
from generator.reports.markdown import LIMIT, inert
from generator.review.change import Change
from generator.review.checklist import NO, UNKNOWN, YES
from generator.review.review import Review, Verdict
from generator.review.shown.text import counted, details, headline, of_run, title

_FOOT = 500
_CELL = 400
_MARKS = {YES: "✅ yes", NO: "❌ no", UNKNOWN: "❔ unknown"}
_VERDICTS = {
    Verdict.APPROVE: "✅ approve",
    Verdict.CHANGES: "❌ changes needed",
    Verdict.GPU: "⏳ needs a GPU",
}
_MORE = "run `trace-dataset review --format text` for all"


class _Page:
    """Collect pieces until there is no more room; what is left out is counted."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def section(
        self,
        name: str,
        head: str,
        rows: Sequence[str],
        *,
        is_open: bool = False,
        share: float = 1.0,
        count: int | None = None,
    ) -> Iterator[str]:
        """Yield a folded section; rows that don't fit are pointed to."""
        if not rows:
            return
        opened = " open" if is_open else ""
        title = f"{name} ({len(rows) if count is None else count})"
        start = f"\n<details{opened}><summary>{title}</summary>\n\n{head}"
        end = "\n</details>\n"
        room = int(self.left * share) - len(start) - len(end) - 100
        kept: list[str] = []
        for row in rows:
            if len(row) > room:
                break
            kept.append(row)
            room -= len(row)
        missing = len(rows) - len(kept)
        more = f"\n{missing} more: {_MORE}.\n" if missing else ""
        text = f"{start}{''.join(kept)}{more}{end}"
        if len(text) <= self.left:
            self.left -= len(text)
            yield text


def report(review: Review, style: Style) -> Iterator[str]:
    """Yield the comment: the verdict and its reasons first, details folded."""
    page = _Page(LIMIT - _FOOT)
    head = [f"### Dataset review: {_VERDICTS[review.verdict]}\n\n"]
    head.append(f"{inert(headline(review))}\n\n{counted(review)}\n")
    if review.is_empty:
        head.append("\nNothing of the dataset changed.\n")
    reasons = [f"- {inert(reason, _CELL)}\n" for reason in review.reasons]
    if reasons:
        head.append("\n" + "".join(reasons[:20]))
    if len(reasons) > 20:
        head.append(f"- {len(reasons) - 20} more: {_MORE}.\n")
    text = "".join(head)
    page.left -= len(text)
    yield text
    if review.to_run:
        lines = [f"{inert(line, 1000)}\n\n" for line in review.to_run]
        yield from page.section("What to run on a GPU", "", lines, is_open=True)
    yield from page.section(
        "Checklist",
        "| definition | point | answer | seen |\n|---|---|---|---|\n",
        [
            f"| {inert(a.definition) if a.definition else ''} | {a.point} "
            f"| {_MARKS[a.answer]} | {inert(a.seen, _CELL)} |\n"
            for a in review.answers
        ],
        is_open=len(review.answers) <= 12,
        share=0.4,
    )
    for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE):
        found = [p for p in review.compared.new if p.severity is severity]
        yield from page.section(
            f"New {severity.value}s",
            "| where | what | fix | rule |\n|---|---|---|---|\n",
            [*_rows(found)],
            is_open=severity is Severity.ERROR,
            share=0.5,
        )
    changed = [row for change in review.changes for row in _change(change)]
    count = len(review.changes)
    yield from page.section("What changed", "", changed, share=0.8, count=count)
    if review.executed is not None:
        lines = [f"- {inert(line, _CELL)}\n" for line in of_run(review.executed)]
        yield from page.section("Executed", "", lines, is_open=True, share=0.8)
    mended = [f"- `{p.rule}` {inert(p.file, 300)}\n" for p in review.compared.mended]
    yield from page.section("Mended problems", "", mended, share=0.5)
    paths = (*review.evidence, *review.tests, *review.others)
    listed = [f"- {inert(path, 300)}\n" for path in paths]
    yield from page.section("Other changed files", "", listed)


def _rows(problems: Iterable[Problem]) -> Iterator[str]:
    for problem in problems:
        place = f"{problem.file}#{problem.pointer}" if problem.pointer else problem.file
        if problem.line is not None:
            place += f" line {problem.line}"
        cells = (inert(place, 300), inert(problem.message, _CELL), inert(problem.fix))
        yield f"| {' | '.join(cells)} | `{problem.rule}` |\n"


def _change(change: Change) -> Iterator[str]:
    yield f"\n**{inert(title(change), 300)}**\n\n"
    for difference in change.differences:
        yield f"- {difference.part}: {inert(difference.text, _CELL)}\n"
    for line in details(change):
        yield f"- {inert(line, _CELL)}\n"
