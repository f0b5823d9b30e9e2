"""A review as JUnit XML: each point of the checklist is a test, and each rule broken."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from generator.problems import Severity
from generator.reports import Style
from generator.review.checklist import NO, UNKNOWN
from generator.review.review import Review, Verdict
from generator.wording import one_line


def report(review: Review, style: Style) -> Iterator[str]:
    """Yield the file; an unknown answer is a skipped test."""
    cases = [*_cases(review)]
    failed = sum("<failure" in case for case in cases)
    skipped = sum("<skipped" in case for case in cases)
    head = f'tests="{len(cases)}" failures="{failed}" errors="0" skipped="{skipped}"'
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites {head}>\n<testsuite name="trace-dataset review" {head}>\n'
    yield from cases
    yield "</testsuite>\n</testsuites>\n"


def _cases(review: Review) -> Iterator[str]:
    reasons = "\n".join(one_line(reason, 1000) for reason in review.reasons)
    kind = {Verdict.CHANGES: "failure", Verdict.GPU: "skipped"}.get(review.verdict)
    yield _case("review", "verdict", kind, review.verdict.value, reasons)
    for answer in review.answers:
        kind = {NO: "failure", UNKNOWN: "skipped"}.get(answer.answer)
        whom = f"checklist.{answer.definition}" if answer.definition else "checklist"
        yield _case(whom, answer.point, kind, answer.seen, answer.seen)
    for problem in review.compared.new:
        kind = "failure" if problem.severity is Severity.ERROR else None
        where = f"{problem.file}#{problem.pointer}"
        yield _case(f"new.{problem.rule}", where, kind, problem.message, str(problem))


def _case(group: str, name: str, kind: str | None, message: str, text: str) -> str:
    head = f"<testcase classname={quoteattr(one_line(group))} name={_quoted(name)}"
    if kind is None:
        return f"{head}><system-out>{escape(text)}</system-out></testcase>\n"
    inner = f"<{kind} message={_quoted(message)}>{escape(text)}</{kind}>"
    return f"{head}>{inner}</testcase>\n"


def _quoted(text: str) -> str:
    return quoteattr(one_line(text, 1000))
