"""What a dataset's own evidence says of the definitions that a change is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from generator.discover import DatasetFile, Discovered
from generator.evidence import Run
from generator.review.change import Change
from generator.review.known import Known
from generator.verification import Line, table_of
from generator.wording import one_line


@dataclass(frozen=True)
class Kept:
    """Hold one line of the table of verification, and where its run was.

    `is_claim` says that the change itself brings it: it is its author's word.
    """

    line: Line
    date: str
    machine: str
    is_claim: bool


def evidence_on(changes: Sequence[Change], known: Known) -> tuple[Kept, ...]:
    """Return the lines on the changed definitions; none where a file can't be read."""
    files = tuple(
        DatasetFile(*change.key, change.path)
        for change in changes
        if change.new is not None and change.kind != "removed"
    )
    try:
        table = table_of(known.root, Discovered(files, (), ()), known.after)
    except OSError:
        return ()
    before = {_identity(run): run for run in known.before}
    return tuple(_kept(line, table.runs, before, known) for line in table.lines)


def _identity(run: Run) -> tuple[object, ...]:
    return (run.date, *sorted(run.machine.items()))


def _kept(
    line: Line,
    runs: Sequence[Run],
    before: dict[tuple[object, ...], Run],
    known: Known,
) -> Kept:
    if not line.run:
        return Kept(line, "", "", False)
    run = runs[line.run - 1]
    old = before.get(_identity(run))
    same = old is not None and (
        old.definitions.get(line.definition) == run.definitions.get(line.definition)
    )
    machine = run.machine.get("gpu") or run.machine.get("device", "")
    is_claim = not (same or known.trust_evidence)
    return Kept(line, one_line(run.date, 10), one_line(machine, 80), is_claim)
