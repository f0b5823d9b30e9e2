"""What a dataset's own evidence says of the definitions that a change is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from generator.dataset.paths import DatasetFile, Discovered
from generator.problems.messages import one_line
from generator.results.evidence import Run
from generator.results.verification import VerificationLine, table_of
from generator.review.change import Change
from generator.review.known import ReviewContext


@dataclass(frozen=True)
class EvidenceLine:
    """Hold one line of the table of verification, and where its run was.

    `is_claim` says that the change itself brings it: it is its author's word.
    """

    line: VerificationLine
    date: str
    machine: str
    is_claim: bool


def evidence_on(
    changes: Sequence[Change], known: ReviewContext
) -> tuple[EvidenceLine, ...]:
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
    return tuple(_kept(line, table.runs, known) for line in table.lines)


def _kept(
    line: VerificationLine, runs: Sequence[Run], known: ReviewContext
) -> EvidenceLine:
    if not line.run:
        return EvidenceLine(line, "", "", False)
    run = runs[line.run - 1]
    machine = run.machine.get("gpu") or run.machine.get("device", "")
    is_claim = not (known.had(run, line.definition) or known.trust_evidence)
    return EvidenceLine(line, one_line(run.date, 10), one_line(machine, 80), is_claim)
