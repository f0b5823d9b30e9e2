"""What audits found of a dataset's definitions, as `verification/audit.json` keeps it.

One line a definition, for readable diffs. A definition is known by the hash of its file:
a result for another text of it is stale.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from generator import __version__
from generator.dataset.atomic_write import write_atomically
from generator.dataset.json_file import MAX_BYTES
from generator.dataset.paths import AUDIT, DatasetFile
from generator.dataset.schema import read_checked
from generator.problems import Failure, pointer
from generator.problems.messages import one_line, plural

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
    """Say in one line what is wrong with an audit.json, and at which JSON pointer."""

    def __init__(self, where: str, message: str) -> None:
        self.pointer = where
        self.message = one_line(message, 500)
        place = one_line(f"{AUDIT}#{where}" if where else AUDIT)
        super().__init__(f"{place}: {self.message} {FIX}")


@dataclass(frozen=True)
class MutantResult:
    """Tell what became of one mutant.

    `test` and `case` are the first that caught it and `why` is what they said; of an
    equivalent one `why` says how that was shown. `raised` says that `run()` raised. `line` counts from 1 in the reference;
    it is 0 where the mutant is no change of the text.
    """

    name: str
    kind: str
    status: str
    line: int = 0
    before: str = ""
    after: str = ""
    test: str = ""
    case: str = ""
    why: str = ""
    raised: bool = False


@dataclass(frozen=True)
class DefinitionResult:
    """Tell what became of all mutants of one definition.

    `reduced` are the axes that were audited shorter than the definition has them.
    `left_out` are tests that the reference itself does not pass: they catch nothing.
    `error` says why a definition could not be audited at all.
    """

    definition: str
    op_type: str
    key: str
    mutants: tuple[MutantResult, ...] = ()
    reduced: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    recorded_cases: int = 0
    seconds: float = 0.0
    error: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """Return how many mutants have each status."""
        found = Counter(mutant.status for mutant in self.mutants)
        return {status: found[status] for status in STATUSES}

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        """Return the mutants that no test caught and that are not equivalent."""
        return tuple(m for m in self.mutants if m.status == SURVIVED)

    @property
    def first_tests(self) -> dict[str, int]:
        """Return how many mutants each test caught first, the most first.

        Those that raise are counted apart: any test would have caught them.
        """
        tests = Counter(
            "raised" if m.raised else m.test.removeprefix("test_")
            for m in self.mutants
            if m.status == CAUGHT
        )
        return dict(sorted(tests.items(), key=lambda item: (-item[1], item[0])))

    @property
    def is_fine(self) -> bool:
        """Return whether every defect shows, and the reference itself passes."""
        return not (self.survivors or self.error or self.left_out)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {**asdict(self), "counts": self.counts}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> DefinitionResult:
        """Read what `as_dict` gave. Raises KeyError, TypeError where it is not that."""
        fields = {name: value[name] for name in cls.__dataclass_fields__}
        mutants = tuple(MutantResult(**mutant) for mutant in value["mutants"])
        left_out = tuple(value["left_out"])
        return cls(**{**fields, "mutants": mutants, "left_out": left_out})


@dataclass(frozen=True)
class Audited:
    """Hold what the last audit of a definition found.

    `sha256` is of the definition's file, `counts` maps each status of a mutant to how
    many had it. A survivor has its name, and its line `before` and `after`: both are
    empty where it is no change of the reference's text. `reduced` are axes that were
    audited shorter than they are. `gen_tests` and `torch` are versions; `date` is the
    day, as 2026-11-21.
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


def read_audits(root: Path) -> dict[str, Audited] | None:
    """Return definition → result; None where the dataset has no audit.json.

    Raises BrokenAudit where it is something else, or leads out of the dataset.
    """
    path = root / AUDIT
    if not os.path.lexists(path):
        return None
    if not _leads_inside(path, root):
        raise BrokenAudit("", "This is a link that leads out of the dataset.")
    read = read_checked(root, AUDIT, "audit")
    if read.problems:
        raise BrokenAudit(read.problems[0].pointer, read.problems[0].message)
    for name, value in read.value["definitions"].items():
        listed, survived = len(value["survivors"]), value["counts"][SURVIVED]
        if listed > survived:
            where = pointer(("definitions", name, "survivors"))
            raise BrokenAudit(where, f"There are {listed}, but {survived} survived.")
    return {name: _read(v) for name, v in read.value["definitions"].items()}


def audits_in(root: Path) -> dict[str, Audited] | None:
    """Return a foreign dataset's audit; what can't be read is none."""
    try:
        return read_audits(root)
    except BrokenAudit:
        return None


def _read(value: Mapping[str, Any]) -> Audited:
    """Return what is kept of an audit; its texts are short lines, whatever they were."""
    return Audited(
        value["sha256"],
        {status: value["counts"][status] for status in STATUSES},
        tuple(
            {name: _short(found[name]) for name in ("name", "before", "after")}
            for found in value["survivors"][:LISTED]
        ),
        {one_line(axis, 60): length for axis, length in value["reduced"].items()},
        _short(value["gen_tests"], _LONGEST_VERSION),
        _short(value["torch"], _LONGEST_VERSION),
        value["date"],
    )


def of_result(result: DefinitionResult, sha256: str, torch: str, date: str) -> Audited:
    """Return what is kept of an audit that was just made."""
    survivors = [vars(mutant) for mutant in result.survivors]
    told = {"counts": result.counts, "reduced": result.reduced, "survivors": survivors}
    made = {"sha256": sha256, "gen_tests": __version__, "torch": torch, "date": date}
    return _read({**told, **made})


def _short(text: str, longest: int = _LONGEST_LINE) -> str:
    """Return text on one short line; of such a line it is the line itself."""
    # twice: what is escaped is longer
    return one_line(one_line(text, longest), longest)


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
    return {name: found for name, found in merged.items() if name not in {*gone}}


def as_text(audits: Mapping[str, Audited]) -> str:
    """Return the text of an audit.json: the same results give the same text.

    Raises Failure where it would be more than is read.
    """
    lines = (
        f"  {json.dumps(name)}: {json.dumps(asdict(found))}"
        for name, found in sorted(audits.items())
    )
    body = ",\n".join(lines)
    text = f'{{"format": {FORMAT}, "definitions": {{\n{body}\n}}}}\n'
    if len(text) > MAX_BYTES:
        mib = MAX_BYTES >> 20
        raise Failure(f"{AUDIT} would have more than the {mib} MiB that are read.")
    return text


class Recorder:
    """Add the results of an audit to a dataset's audit.json.

    Made before the audit: raises Failure where there is an audit.json that can't be
    added to, or where none can be written, and remembers what the files were.
    """

    def __init__(self, dataset: Path, files: Sequence[DatasetFile]) -> None:
        folder = (dataset / AUDIT).parent
        why, there = "", folder if os.path.lexists(folder) else dataset
        if not _leads_inside(folder, dataset):
            why = f"{folder.name} is a link that leads out of the dataset."
        elif not there.is_dir():
            why = f"{folder.name} is no folder."
        elif not os.access(there, os.W_OK | os.X_OK):
            why = f"{there}: Permission denied."
        if why:
            advice = f"Make {folder.name} a folder that can be written to."
            raise Failure(f"{AUDIT} can't be written: {why} {advice}")
        read_audits(dataset)
        self._dataset = dataset
        self._before = {file: self._sha256(file) for file in files}

    def record(self, results: Iterable[DefinitionResult]) -> Iterator[str]:
        """Write the results, in the files' order; yield a line on each remark.

        What could not be judged is taken out. Raises Failure and OSError.
        """
        date = datetime.now(timezone.utc).date().isoformat()
        new, gone = {}, []
        for (file, was), result in zip(self._before.items(), results, strict=True):
            sha256 = self._sha256(file)
            why = result.error
            if not why and sha256 != was:
                why = "its file changed during the audit"
            if not why and result.left_out:
                why = f"the reference itself does not pass {result.left_out[0]}"
            if why:
                yield f"{one_line(file.name, 100)}: not recorded: {one_line(why)}"
                gone.append(file.name)
            else:
                # imported here: validate reads audits, and this takes 50 ms
                from importlib import metadata

                torch = metadata.version("torch")
                new[file.name] = of_result(result, sha256, torch, date)
        old = read_audits(self._dataset)
        if old is not None or new:
            text = as_text(merge(old or {}, new, gone))
            write_atomically(self._dataset / AUDIT, text.encode("ascii"))
            yield f"{AUDIT}: {plural(len(new), 'definition')} recorded"

    def _sha256(self, file: DatasetFile) -> str:
        """Return the hash of a definition's file, empty where it can't be read."""
        try:
            return hashlib.sha256((self._dataset / file.path).read_bytes()).hexdigest()
        except OSError:
            return ""


def _leads_inside(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
