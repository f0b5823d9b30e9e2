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
_SKIPS = _NEVER_RUN, _NOT_COMPARED = ("never run here", "not compared")


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


def table_of(
    root: Path,
    found: Discovered,
    runs: Iterable[Run],
    audits: Mapping[str, Audited] | None = None,
) -> Verification:
    """Return the table of a dataset's definitions. Raises OSError as reading does."""
    ordered = dict(enumerate(sorted(runs, key=lambda run: run.key), 1))
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
    named = {name for run in ordered.values() for name in run.definitions}
    # runs that newer ones have replaced are not shown
    used = sorted({line.run for line in lines if line.run})
    numbers = {run: number for number, run in enumerate([0, *used])}
    return Verification(
        tuple(ordered[number] for number in used),
        tuple(replace(line, run=numbers[line.run]) for line in lines),
        tuple(sorted((named | {*(audits or ())}) - known)),
        tuple(audited),
    )


def _lines(
    file: DatasetFile, sha256: str, runs: Mapping[int, Run]
) -> list[VerificationLine]:
    """Return a definition's lines, out of the runs in their order, oldest first."""
    entries = [
        (number, run.definitions[file.name])
        for number, run in runs.items()
        if file.name in run.definitions
    ]
    found = [
        _line(file, number, source, verdict, entry.sha256 != sha256)
        for number, entry in entries
        for source, verdict in _with_own_tests(entry).items()
    ]
    lines = _chosen((line for line in found if line.verdict not in _SKIPS), runs)
    sources = {line.source for line in lines} - {OWN_TESTS}
    # why a source was not asked matters if it is the GPU, or if no other one was
    has_ground_truth = any(map(is_ground_truth, sources))
    for line in _skips((line for line in found if line.source not in sources), runs):
        if line.verdict == _NEVER_RUN or not has_ground_truth:
            lines.append(line)
    if not lines:
        note = "no test of it compares anything" if entries else "no run has it"
        whom = (file.op_type, file.name, "", _NOT_COMPARED)
        lines.append(VerificationLine(*whom, False, 0, None, note))
    return sorted(lines, key=lambda x: (x.source == OWN_TESTS, x.source, x.run))


def _with_own_tests(entry: DefinitionEvidence) -> dict[str, SourceEvidence]:
    """Return an entry's verdicts, and one on the tests that compare with nothing."""
    if not entry.failed:
        return dict(entry.sources)
    own = SourceEvidence("FAILED", reason=", ".join(entry.failed))
    return {**entry.sources, OWN_TESTS: own}


def _chosen(
    found: Iterable[VerificationLine], runs: Mapping[int, Run]
) -> list[VerificationLine]:
    """Return for each source its best evidence, and every failure.

    Of each kind of machine the newest counts: on the definition as it is before one on
    another text. Which of a day's runs is newer is not known: a failure counts first,
    then the run that compared more cases. Of machines that agree one is shown, a GPU
    before a CPU.
    """

    def rank(line: VerificationLine) -> tuple[bool, str, bool, int]:
        cases = line.figures.cases if line.figures else 0
        return not line.stale, runs[line.run].date, line.verdict in _BAD, cases

    newest: dict[tuple[str, str], VerificationLine] = {}
    for line in found:
        key = (line.source, runs[line.run].machine.get("gpu", ""))
        if key not in newest or rank(line) >= rank(newest[key]):
            newest[key] = line
    by_source: dict[str, list[VerificationLine]] = {}
    for line in newest.values():
        by_source.setdefault(line.source, []).append(line)
    chosen = []
    for of in by_source.values():
        best = max(of, key=lambda x: (not x.stale, runs[x.run].is_on_gpu, x.run))
        chosen += [best, *(line for line in of if line.is_bad and line is not best)]
    return chosen


def _skips(
    found: Iterable[VerificationLine], runs: Mapping[int, Run]
) -> Iterable[VerificationLine]:
    """Return one skip for each source: the newest, one of a GPU before the CPU's."""
    ordered = sorted(found, key=lambda line: (runs[line.run].is_on_gpu, line.run))
    return {line.source: line for line in ordered}.values()


def _line(
    file: DatasetFile, run: int, source: str, found: SourceEvidence, stale: bool
) -> VerificationLine:
    notes = [found.reason] if found.reason else []
    if found.hit_ratio is not None and found.hit_ratio < 1.0:
        notes.append(f"hit ratio {found.hit_ratio:.3g}")
    for figure, (low, high) in found.figures.items():
        span = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        notes.append(f"{figure} {span}")
    if found.not_independent:
        names = ", ".join(found.not_independent)
        notes.append(f"{names} taken from the reference: not independent")
    if stale:
        notes.append("on another text of the definition")
    verdict = found.verdict
    if verdict == SKIPPED:
        verdict = _NEVER_RUN if found.needs_other_gpu else _NOT_COMPARED
    figures = found if found.cases else None
    whom = (file.op_type, file.name, source, verdict)
    return VerificationLine(*whom, stale, run, figures, "; ".join(notes))


def agreed(lines: Iterable[VerificationLine]) -> dict[str, tuple[str, ...]]:
    """Return definition → the ground truths and the oracle that its text agreed with."""
    found: dict[str, set[str]] = {}
    for line in lines:
        is_source = line.source == ORACLE or is_ground_truth(line.source)
        if line.verdict == "PASSED" and not line.stale and is_source:
            found.setdefault(line.definition, set()).add(line.source)
    return {name: tuple(sorted(sources)) for name, sources in found.items()}
