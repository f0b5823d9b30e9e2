"""Results of audits, as `verification/audit.json` keeps them.

What they found of limits is in `verification/limits.json`, in the same form.

One line a definition, for readable diffs. A definition is known by the hash of its file:
a result for another text of it is stale.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from generator.dataset.file_reading import is_absent
from generator.dataset.json_file import MAX_BYTES
from generator.dataset.paths import AUDIT
from generator.dataset.schema import foremost, read_checked
from generator.problems import Failure, pointer
from generator.problems.messages import one_line

CAUGHT, SURVIVED = "caught", "survived"
EQUIVALENT, TIMED_OUT = "equivalent", "timed out"
STATUSES = (CAUGHT, EQUIVALENT, SURVIVED, TIMED_OUT)

FORMAT = 1
FIX = "Take the file from git, or delete it and run trace-dataset audit --all --record."
LISTED = 50
"""Survivors that are kept of a definition; how many there were is always kept."""

KNOWN, STALE, ABSENT = "known", "stale", "absent"
_LONGEST_LINE, _LONGEST_VERSION = 300, 60


class BrokenAudit(Failure):
    """Raised with one line and the JSON pointer for an invalid audit.json."""

    def __init__(self, where: str, message: str, path: str = AUDIT) -> None:
        self.pointer = where
        self.message = one_line(message, 500)
        place = one_line(f"{path}#{where}" if where else path)
        super().__init__(f"{place}: {self.message} {FIX}")


@dataclass(frozen=True)
class Audited:
    """The result of a definition's last audit.

    `sha256` is of what a run depends on (`rules.basis`), `counts` maps each status of a
    mutant to how many had it. A survivor has its name, and its line `before` and
    `after`: both are empty where it is no change of the reference's text. `reduced` are
    axes that were audited shorter than they are. `gen_tests` and `torch` are versions;
    `date` is the day, as 2026-11-21.
    """

    sha256: str
    counts: Mapping[str, int]
    survivors: tuple[Mapping[str, str], ...] = ()
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
        names = [survivor["name"] for survivor in self.survivors[:most]]
        more = self.survived - len(names)
        return ", ".join([*names, *([f"and {more} more"] if more else [])])


def read_audits(root: Path, path: str = AUDIT) -> dict[str, Audited] | None:
    """Return definition → result; None where the dataset has no such file.

    Raises BrokenAudit where it is something else, or behind a link.
    """
    if is_absent(root, path):
        return None
    read = read_checked(root, path, "audit")
    if read.problems:
        first = foremost(read.problems)
        raise BrokenAudit(first.pointer, first.message, path)
    for name, value in read.value["definitions"].items():
        listed, survived = len(value["survivors"]), value["counts"][SURVIVED]
        if listed > survived:
            where = pointer(("definitions", name, "survivors"))
            raise BrokenAudit(
                where, f"There are {listed}, but {survived} survived.", path
            )
    return {name: read_entry(v) for name, v in read.value["definitions"].items()}


def audits_in(root: Path) -> dict[str, Audited] | None:
    """Return a foreign dataset's audit; what can't be read is none."""
    try:
        return read_audits(root)
    except BrokenAudit:
        return None


def read_entry(value: Mapping[str, Any]) -> Audited:
    """Return what is kept of an audit; its texts are short lines, whatever they were."""
    return Audited(
        value["sha256"],
        {status: value["counts"][status] for status in STATUSES},
        tuple(
            {name: _short(survivor[name]) for name in ("name", "before", "after")}
            for survivor in value["survivors"][:LISTED]
        ),
        {one_line(axis, 60): length for axis, length in value["reduced"].items()},
        _short(value["gen_tests"], _LONGEST_VERSION),
        _short(value["torch"], _LONGEST_VERSION),
        value["date"],
    )


def _short(text: str, longest: int = _LONGEST_LINE) -> str:
    """Return text on one short line; of such a line it is the line itself."""
    # twice: what is escaped is longer
    return one_line(one_line(text, longest), longest)


def as_text(audits: Mapping[str, Audited], path: str = AUDIT) -> str:
    """Return the text of an audit.json: the same results give the same text.

    Raises Failure where it would be more than is read.
    """
    lines = (
        f"  {json.dumps(name)}: {json.dumps(asdict(audit))}"
        for name, audit in sorted(audits.items())
    )
    body = ",\n".join(lines)
    text = f'{{"format": {FORMAT}, "definitions": {{\n{body}\n}}}}\n'
    if len(text) > MAX_BYTES:
        mib = MAX_BYTES >> 20
        raise Failure(f"{path} would have more than the {mib} MiB that are read.")
    return text
