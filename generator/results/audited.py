"""What the audit found of each definition, as it is kept with the dataset.

A definition is known by the hash of its file: a result for another text of it is stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from generator import __version__
from generator.problems.messages import one_line
from generator.results.audit_result import (
    CAUGHT,
    EQUIVALENT,
    STATUSES,
    SURVIVED,
    DefinitionResult,
)

LISTED = 50
"""Survivors that are kept of a definition; how many there were is always kept."""

LONGEST_LINE, LONGEST_VERSION = 300, 60


@dataclass(frozen=True)
class Survivor:
    """Name a planted defect that no test caught, with its line before and after.

    The lines are empty where the defect is no change of the reference's text.
    """

    name: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Audited:
    """Hold what the last audit of a definition found.

    `sha256` is of the definition's file, `counts` maps each status of a mutant to how
    many had it. `reduced` are axes that were audited shorter than they are. `gen_tests`
    and `torch` are versions; `date` is the day, as 2026-11-21.
    """

    sha256: str
    counts: Mapping[str, int]
    survivors: tuple[Survivor, ...] = ()
    reduced: Mapping[str, int] = field(default_factory=dict)
    gen_tests: str = ""
    torch: str = ""
    date: str = ""

    @property
    def survived(self) -> int:
        """Return how many defects no test caught."""
        return self.counts[SURVIVED]

    @property
    def defects(self) -> int:
        """Return how many mutants were defects: all that are not equivalent."""
        return sum(self.counts.values()) - self.counts[EQUIVALENT]

    @property
    def share(self) -> str:
        """Return `157 / 158`: how many were caught, of all defects."""
        return f"{self.counts[CAUGHT]} / {self.defects}"

    def named(self, most: int) -> str:
        """Return the names of the first survivors, and how many more there are."""
        names = [survivor.name for survivor in self.survivors[:most]]
        more = self.survived - len(names)
        return ", ".join([*names, *([f"and {more} more"] if more else [])])

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        counts = {status: self.counts[status] for status in STATUSES}
        return {**asdict(self), "counts": counts}


def of_result(result: DefinitionResult, sha256: str, torch: str, date: str) -> Audited:
    """Return what is kept of an audit; its texts are short lines, whatever they were."""
    survivors = (
        Survivor(short(m.name), short(m.before), short(m.after))
        for m in result.survivors[:LISTED]
    )
    return Audited(
        sha256,
        result.counts,
        tuple(survivors),
        dict(result.reduced),
        __version__,
        short(torch, LONGEST_VERSION),
        date,
    )


def merge(
    old: Mapping[str, Audited], new: Mapping[str, Audited], gone: Iterable[str] = ()
) -> dict[str, Audited]:
    """Return what is kept of `old` and `new` results together.

    Definitions that are only among the old stay, those that are `gone` do not. A result
    that is what it was keeps its day, so that a diff has only what changed.
    """
    merged = {**old, **new}
    for name, found in new.items():
        known = old.get(name)
        if known is not None and replace(found, date=known.date) == known:
            merged[name] = known
    for name in gone:
        merged.pop(name, None)
    return merged


def short(text: str, longest: int = LONGEST_LINE) -> str:
    """Return text on one short line; of such a line it is the line itself."""
    # twice: what is escaped is longer
    return one_line(one_line(text, longest), longest)
