"""The audit's result of each definition, as the table of verification shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from generator.audit.result import CAUGHT, EQUIVALENT, SURVIVED, TIMED_OUT
from generator.audited import Audited
from generator.discover import DatasetFile
from generator.wording import plural

KNOWN, STALE, ABSENT = "known", "stale", "absent"
HEAD = (
    "definition|caught|survived|timed out|equivalent|shorter axes|gen-tests|torch|date"
)
_SHOWN = 10
"""Survivors that are shown of a definition."""


@dataclass(frozen=True)
class AuditLine:
    """Hold one definition's audit: `state` says whether it is known, stale or absent.

    A stale one is of another text of the definition; an absent one is None.
    """

    op_type: str
    definition: str
    state: str
    audited: Audited | None

    @property
    def current(self) -> Audited | None:
        """Return the audit if it is of the definition as it is."""
        return self.audited if self.state == KNOWN else None

    def as_dict(self) -> dict[str, Any]:
        """Return the line as plain JSON values."""
        own = {
            "op_type": self.op_type,
            "definition": self.definition,
            "state": self.state,
        }
        if self.audited is None:
            return own
        return {**own, "defects": self.audited.defects, **self.audited.as_dict()}


def audit_line(file: DatasetFile, sha256: str, found: Audited | None) -> AuditLine:
    """Return the line of a definition whose file has this hash."""
    state = ABSENT
    if found is not None:
        state = KNOWN if found.sha256 == sha256 else STALE
    return AuditLine(file.op_type, file.name, state, found)


def summary(lines: Sequence[AuditLine]) -> str:
    """Return in a sentence what audits found of definitions as they are."""
    known = [line.audited for line in lines if line.state == KNOWN and line.audited]
    total = {
        status: sum(found.counts[status] for found in known)
        for status in (CAUGHT, SURVIVED, TIMED_OUT)
    }
    states = [line.state for line in lines]
    return (
        f"Of {plural(sum(total.values()), 'defect')} that `trace-dataset audit` planted "
        f"in {len(known)} of them, the tests caught {total[CAUGHT]}, {total[TIMED_OUT]} "
        f"timed out, {total[SURVIVED]} survived; {plural(states.count(STALE), 'definition')} "
        f"changed since, {states.count(ABSENT)} never audited."
    )


def cells(line: AuditLine) -> list[str]:
    """Return a line's cells under HEAD."""
    found = line.audited
    if found is None:
        return [line.definition, "never audited", *[""] * 7]
    share = f"stale: {found.share}" if line.state == STALE else found.share
    counts = [str(found.counts[s]) for s in (SURVIVED, TIMED_OUT, EQUIVALENT)]
    axes = ", ".join(f"{axis}={length}" for axis, length in found.reduced.items())
    versions = [found.gen_tests, found.torch, found.date]
    return [line.definition, share, *counts, axes, *versions]


def survivors(lines: Sequence[AuditLine]) -> Iterator[tuple[str, str, str, str]]:
    """Yield definition, name, line before and after of survivors that still count."""
    for line in lines:
        found = line.current
        if found is None or not found.survived:
            continue
        shown = found.survivors[:_SHOWN]
        for one in shown:
            yield line.definition, one.name, one.before, one.after
        if found.survived > len(shown):
            more = f"and {found.survived - len(shown)} more"
            yield line.definition, more, "", ""
