"""The review for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from generator.problems import Severity
from generator.reports import Style
from generator.review.change import Change
from generator.review.review import Executed, Review
from generator.wording import one_line, plural


def report(review: Review, style: Style) -> Iterator[str]:
    """Yield what changed, what is new, the checklist, and the verdict last."""
    yield f"{headline(review)}\n"
    for change in review.changes:
        yield f"\n{one_line(title(change))}\n"
        for difference in change.differences:
            yield f"  {difference.part}: {one_line(difference.text, 500)}\n"
        for line in details(change):
            yield f"  {one_line(line, 500)}\n"
    yield from _listed(
        "\nchanged outside of the dataset, and not reviewed", review.others
    )
    yield from _listed("\nevidence", review.evidence)
    yield from _listed("\nrendered tests (gen-tests --all --check)", review.tests)
    new = review.compared.new
    shown = [p for p in new if style.notes or p.severity is not Severity.NOTE]
    if shown:
        yield "\nnew problems\n"
    for problem in shown:
        yield f"  {problem}\n"
    if review.compared.mended:
        yield "\nmended\n"
    for problem in review.compared.mended[:50]:
        yield f"  {problem.rule}: {one_line(problem.file)}: {problem.message}\n"
    if review.answers:
        yield "\nchecklist\n"
    whom = None
    for answer in review.answers:
        if answer.definition != whom:
            whom = answer.definition
            yield f"  {one_line(whom)}\n" if whom else ""
        yield f"    {answer.answer:<7} {answer.point}: {one_line(answer.seen, 500)}\n"
    if review.executed is not None:
        yield "\nexecuted\n"
        for line in of_run(review.executed):
            yield f"  {one_line(line, 500)}\n"
    yield f"\n{counted(review)}\n"
    yield f"verdict: {review.verdict.value}\n"
    for reason in review.reasons:
        yield f"  {one_line(reason, 500)}\n"
    yield from _listed("run on a GPU", review.to_run)


def _listed(head: str, lines: tuple[str, ...]) -> Iterator[str]:
    if lines:
        yield f"{head}\n"
        yield from (f"  {one_line(line, 500)}\n" for line in lines[:50])
    if len(lines) > 50:
        yield f"  and {len(lines) - 50} more\n"


def headline(review: Review) -> str:
    """Return which revisions were compared."""
    head = review.revisions.head[:12] or "the working tree"
    base = review.revisions.base[:12] or "an empty dataset"
    return f"Review of {head} against {base} ({review.revisions.said})"


def title(change: Change) -> str:
    """Return what happened to which definition."""
    if change.kind == "renamed":
        return f"renamed: {change.old_path} to {change.path}"
    if change.kind == "attached":
        return f"files beside {change.path}"
    return f"{change.kind}: {change.path}"


def details(change: Change) -> Iterator[str]:
    """Yield lines on the interface of a new definition, workloads and other files."""
    if change.kind == "new" and change.new is not None:
        new = change.new
        axes = (
            f"{n} = {'?' if a.value is None else a.value}" for n, a in new.axes.items()
        )
        yield f"axes: {', '.join(axes)}"
        yield f"inputs: {', '.join(new.inputs)}; outputs: {', '.join(new.outputs)}"
        yield f"tags: {', '.join(new.tags) or 'none'}"
    if change.kind == "changed" and change.old is not None and change.new is not None:
        if not change.differences:
            yield "only the layout of the file changed"
        elif not change.computes:
            yield "what it computes did not change"
    work = change.workloads
    if work is not None and "workloads" in change.files:
        yield (
            f"workloads: {work.base} before, {work.head} now: {work.added} added, "
            f"{work.removed} removed, {work.changed} changed; {change.workloads_ranges()}"
        )
    for kind in ("blobs", "recording", "solutions", "traces"):
        counts = change.files.get(kind)
        if counts:
            said = ", ".join(
                f"{plural(n, 'file')} {what}" for what, n in counts.items()
            )
            yield f"{kind}: {said}"


def counted(review: Review) -> str:
    """Return how many problems are new, mended, and were there before."""
    compared = review.compared
    return (
        f"{plural(review.count(Severity.ERROR), 'new error')}, "
        f"{plural(review.count(Severity.WARNING), 'new warning')}, "
        f"{plural(review.count(Severity.NOTE), 'new note')}; "
        f"{len(compared.mended)} mended, {compared.known} there before; "
        f"{plural(compared.counts.definitions, 'definition')} in all"
    )


def of_run(executed: Executed) -> Iterator[str]:
    """Yield what a run showed, and what of it is believed."""
    yield (
        f"on {executed.device}: {executed.passed} passed, {len(executed.failed)} failed, "
        f"{executed.skipped} skipped, in {executed.seconds:.1f} s"
    )
    for name in executed.failed[:20]:
        yield f"failed: {name}"
    for problem in executed.problems:
        yield f"not believed: {problem}"
    for layer in executed.layers:
        yield f"the sandbox lacks: {layer}"
    yield (
        "A failure is believed. A pass is the word of a process that ran the reference "
        "beside the tests: it is worth what the screen of the source is worth."
    )
