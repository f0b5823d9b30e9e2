"""What each definition of a dataset was compared with, as a table, out of evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from generator.dataset.paths import DatasetFile, Discovered
from generator.results.audits import KNOWN, Audited, state_of
from generator.results.evidence import SKIPPED, DefinitionEvidence, Run, SourceEvidence
from generator.results.sources import ORACLE, OWN_TESTS, is_ground_truth

_BAD = ("FAILED", "ERROR")


@dataclass(frozen=True)
class VerificationLine:
    """Hold one line of the table: a definition, a source, the verdict, from which run.

    `source` is empty and `run` 0 where no run has the definition; else `run` counts the
    runs of the table from 1. A `stale` verdict is one on another text of the definition.
    """

    op_type: str
    definition: str
    source: str
    verdict: str
    stale: bool
    run: int
    figures: SourceEvidence | None
    note: str

    @property
    def is_bad(self) -> bool:
        """Return whether a comparison with the definition as it is failed."""
        return self.verdict in _BAD and not self.stale

    def as_dict(self) -> dict[str, Any]:
        """Return the line as plain JSON values; NaN and infinities are strings."""
        figures = asdict(self.figures) if self.figures is not None else {}
        for name in ("verdict", "reason", "skip_kind"):
            figures.pop(name, None)
        own = {n: v for n, v in vars(self).items() if n != "figures"}
        return {**figures, **own}


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
        own = {n: v for n, v in vars(self).items() if n != "audited"}
        if self.audited is None:
            return own
        return {**own, "defects": self.audited.defects, **asdict(self.audited)}


@dataclass(frozen=True)
class Verification:
    """Hold the runs that the lines name, the lines, and names that no file has.

    `audits` has a line for each definition too; none where no audit is on record.
    """

    runs: tuple[Run, ...]
    lines: tuple[VerificationLine, ...]
    unknown: tuple[str, ...]
    audits: tuple[AuditLine, ...] = ()

    @property
    def failed(self) -> tuple[VerificationLine, ...]:
        """Return the lines of comparisons that failed."""
        return tuple(line for line in self.lines if line.is_bad)

    @property
    def stale(self) -> tuple[str, ...]:
        """Return the definitions of which a verdict is on another text."""
        return tuple(dict.fromkeys(x.definition for x in self.lines if x.stale))


@dataclass(frozen=True)
class _Found:
    """Hold one verdict, in which run it is, and on which text of the definition."""

    number: int
    run: Run
    source: str
    verdict: SourceEvidence
    stale: bool

    @property
    def is_against(self) -> bool:
        """Return whether it says that the comparison failed."""
        return self.verdict.verdict in _BAD

    @property
    def rank(self) -> tuple[bool, str, bool, int]:
        """Return what decides between verdicts of one machine; the higher counts."""
        return not self.stale, self.run.date, self.is_against, self.verdict.cases


def table_of(
    root: Path,
    found: Discovered,
    runs: Iterable[Run],
    audits: Mapping[str, Audited] | None = None,
) -> Verification:
    """Return the table of a dataset's definitions. Raises OSError as reading does."""
    ordered = list(enumerate(sorted(runs, key=lambda run: run.key), 1))
    lines: list[VerificationLine] = []
    audited: list[AuditLine] = []
    for file in found.files:
        sha256 = hashlib.sha256((root / file.path).read_bytes()).hexdigest()
        lines += _lines(file, sha256, ordered)
        if audits is not None:
            audit = audits.get(file.name)
            state = state_of(audit, sha256)
            audited.append(AuditLine(file.op_type, file.name, state, audit))
    known = {file.name for file in found.files}
    named = {name for _, run in ordered for name in run.definitions}
    # runs that newer ones have replaced are not shown
    used = sorted({line.run for line in lines if line.run})
    numbers = {run: number for number, run in enumerate([0, *used])}
    return Verification(
        tuple(run for number, run in ordered if number in used),
        tuple(replace(line, run=numbers[line.run]) for line in lines),
        tuple(sorted((named | {*(audits or ())}) - known)),
        tuple(audited),
    )


def _lines(
    file: DatasetFile, sha256: str, runs: Iterable[tuple[int, Run]]
) -> list[VerificationLine]:
    entries = [
        (number, run, entry)
        for number, run in runs
        if (entry := run.definitions.get(file.name)) is not None
    ]
    found = [
        _Found(number, run, source, verdict, entry.sha256 != sha256)
        for number, run, entry in entries
        for source, verdict in _with_own_tests(entry).items()
    ]
    chosen = _chosen(found)
    sources = {f.source for f in chosen} - {OWN_TESTS}
    lines = [_line(file, f) for f in chosen]
    # why a source was not asked matters if it is the GPU, or if no other one was
    has_ground_truth = any(map(is_ground_truth, sources))
    for f in _absent(f for f in found if f.source not in sources):
        if f.verdict.needs_other_gpu:
            lines.append(_line(file, f, "never run here"))
        elif not has_ground_truth:
            lines.append(_line(file, f, "not compared"))
    if not lines:
        note = "no test of it compares anything" if entries else "no run has it"
        whom = (file.op_type, file.name, "", "not compared")
        lines.append(VerificationLine(*whom, False, 0, None, note))
    return sorted(lines, key=lambda x: (x.source == OWN_TESTS, x.source, x.run))


def _with_own_tests(entry: DefinitionEvidence) -> dict[str, SourceEvidence]:
    """Return an entry's verdicts, and one on the tests that compare with nothing."""
    if not entry.failed:
        return dict(entry.sources)
    own = SourceEvidence("FAILED", reason=", ".join(entry.failed))
    return {**entry.sources, OWN_TESTS: own}


def _chosen(found: Iterable[_Found]) -> list[_Found]:
    """Return for each source its best evidence, and every failure.

    Of each kind of machine the newest counts: on the definition as it is before one on
    another text. Which of a day's runs is newer is not known: a failure counts first,
    then the run that compared more cases. Of machines that agree one is shown, a GPU
    before a CPU.
    """
    newest: dict[tuple[str, str], _Found] = {}
    for f in found:  # in the order of the runs, the oldest first
        key = (f.source, f.run.machine.get("gpu", ""))
        is_newer = key not in newest or f.rank >= newest[key].rank
        if f.verdict.verdict != SKIPPED and is_newer:
            newest[key] = f
    by_source: dict[str, list[_Found]] = {}
    for f in newest.values():
        by_source.setdefault(f.source, []).append(f)
    chosen = []
    for of_source in by_source.values():
        best = max(of_source, key=lambda f: (not f.stale, f.run.is_on_gpu, f.number))
        against = [f for f in of_source if f.is_against and not f.stale]
        chosen += [best, *(f for f in against if f is not best)]
    return chosen


def _absent(found: Iterable[_Found]) -> Iterable[_Found]:
    """Return one skip for each source: the newest, one of a GPU before the CPU's."""
    ordered = sorted(found, key=lambda f: (f.run.is_on_gpu, f.number))
    return {f.source: f for f in ordered}.values()


def _line(file: DatasetFile, found: _Found, verdict: str = "") -> VerificationLine:
    v = found.verdict
    notes = [v.reason] if v.reason else []
    if v.hit_ratio is not None and v.hit_ratio < 1.0:
        notes.append(f"hit ratio {v.hit_ratio:.3g}")
    for figure, (low, high) in v.figures.items():
        span = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        notes.append(f"{figure} {span}")
    if v.not_independent:
        names = ", ".join(v.not_independent)
        notes.append(f"{names} taken from the reference: not independent")
    if found.stale:
        notes.append("on another text of the definition")
    return VerificationLine(
        file.op_type,
        file.name,
        found.source,
        verdict or v.verdict,
        found.stale,
        found.number,
        v if v.cases else None,
        "; ".join(notes),
    )


def agreed(lines: Iterable[VerificationLine]) -> dict[str, tuple[str, ...]]:
    """Return definition → the ground truths and the oracle that its text agreed with."""
    found: dict[str, set[str]] = {}
    for line in lines:
        is_source = line.source == ORACLE or is_ground_truth(line.source)
        if line.verdict == "PASSED" and not line.stale and is_source:
            found.setdefault(line.definition, set()).add(line.source)
    return {name: tuple(sorted(sources)) for name, sources in found.items()}
