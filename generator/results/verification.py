"""Table of the comparisons on record of each definition, made from evidence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from generator.dataset.paths import DatasetFile, Discovered
from generator.results.audits import ABSENT, KNOWN, STALE, Audited
from generator.results.evidence import SKIPPED, Run, SourceEvidence
from generator.results.sources import ORACLE, OWN_TESTS, is_ground_truth
from generator.rules.basis import basis_in

_BAD = ("FAILED", "ERROR")
_SKIPS = _NEVER_RUN, _NOT_COMPARED = ("never run here", "not compared")


@dataclass(frozen=True)
class VerificationLine:
    """One line of the table: a definition, a source, the verdict, from which run.

    `source` and `run` are empty where no run has the definition. A `stale` verdict
    is one on another text of the definition.
    """

    op_type: str
    definition: str
    source: str
    verdict: str
    stale: bool
    run: Run
    figures: SourceEvidence | None
    note: str

    @property
    def is_bad(self) -> bool:
        """Return whether a comparison with the definition as it is failed."""
        return self.verdict in _BAD and not self.stale

    def as_dict(self) -> dict[str, Any]:
        """Return the line, but its run, as plain JSON values."""
        figures = asdict(self.figures) if self.figures is not None else {}
        for name in ("verdict", "reason", "skip_kind"):
            figures.pop(name, None)
        fields = {n: v for n, v in vars(self).items() if n not in ("figures", "run")}
        return {**figures, **fields}


@dataclass(frozen=True)
class AuditLine:
    """One definition's audit: `state` says whether it is known, stale or absent.

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
        fields = {n: v for n, v in vars(self).items() if n != "audited"}
        if self.audited is None:
            return fields
        return {**fields, "defects": self.audited.defects, **asdict(self.audited)}


@dataclass(frozen=True)
class Verification:
    """The runs that the lines name, the lines, and names that no file has.

    `audits` has a line for each definition too; none where no audit is on record.
    """

    runs: tuple[Run, ...]
    lines: tuple[VerificationLine, ...]
    unknown: tuple[str, ...]
    audits: tuple[AuditLine, ...] = ()

    def of(self, names: Collection[str]) -> Verification:
        """Return what is about these definitions, and the runs that this names."""
        lines = tuple(line for line in self.lines if line.definition in names)
        used = {id(line.run) for line in lines}
        runs = tuple(run for run in self.runs if id(run) in used)
        audits = tuple(line for line in self.audits if line.definition in names)
        return Verification(runs, lines, (), audits)

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
    discovered: Discovered,
    runs: Iterable[Run],
    audits: Mapping[str, Audited] | None = None,
) -> Verification:
    """Return the table of a dataset's definitions. Raises OSError as reading does."""
    ordered = sorted(runs, key=lambda run: run.key)
    lines: list[VerificationLine] = []
    audited: list[AuditLine] = []
    for file in discovered.files:
        basis = basis_in(root, file.path)
        lines += lines_of(file, basis, ordered)
        if audits is not None:
            audit = audits.get(file.name)
            state = ABSENT if audit is None else STALE
            if audit is not None and audit.sha256 == basis:
                state = KNOWN
            audited.append(AuditLine(file.op_type, file.name, state, audit))
    known = {file.name for file in discovered.files}
    named = {name for run in ordered for name in run.definitions}
    used = {id(line.run) for line in lines}
    return Verification(
        # runs that newer ones have replaced are not shown
        tuple(run for run in ordered if id(run) in used),
        tuple(lines),
        tuple(sorted((named | {*(audits or ())}) - known)),
        tuple(audited),
    )


def lines_of(
    file: DatasetFile, basis: str, runs: Iterable[Run]
) -> list[VerificationLine]:
    """Return a definition's lines, out of runs in the order of their keys.

    `basis` is the hash of what a run of the definition depends on, as it is.
    """
    having = [run for run in runs if file.name in run.definitions]
    of_runs: list[VerificationLine] = []
    for run in having:
        entry = run.definitions[file.name]
        sources = dict(entry.sources)
        if entry.failed:
            # the tests that compare with nothing
            sources[OWN_TESTS] = SourceEvidence(
                "FAILED", reason=", ".join(entry.failed)
            )
        stale = entry.sha256 != basis
        of_runs += [_line(file, run, *one, stale) for one in sources.items()]
    lines = _chosen(line for line in of_runs if line.verdict not in _SKIPS)
    compared = {line.source for line in lines} - {OWN_TESTS}
    # why a source was not asked matters if it is the GPU, or if no other one was
    has_ground_truth = any(map(is_ground_truth, compared))
    # of each source one skip: the newest of the text as it is, a GPU's before the CPU's
    of_runs.sort(key=lambda line: (not line.stale, line.run.is_on_gpu))
    skips = {line.source: line for line in of_runs if line.source not in compared}
    for line in skips.values():
        if line.verdict == _NEVER_RUN or not has_ground_truth:
            lines.append(line)
    if not lines:
        note = "no test of it compares anything" if having else "no run has it"
        whom = (file.op_type, file.name, "", _NOT_COMPARED)
        lines.append(VerificationLine(*whom, False, Run("", {}, {}), None, note))
    return sorted(lines, key=lambda x: (x.source == OWN_TESTS, x.source, x.run.key))


def _chosen(lines: Iterable[VerificationLine]) -> list[VerificationLine]:
    """Return for each source its best evidence, and every failure.

    Of each kind of machine the newest counts: on the definition as it is before one on
    another text. Which of a day's runs is newer is not known: a failure counts first,
    then the run that compared more cases. Of machines that agree one is shown, a GPU
    before a CPU.
    """

    def rank(line: VerificationLine) -> tuple[bool, str, bool, int]:
        cases = line.figures.cases if line.figures else 0
        return not line.stale, line.run.date, line.verdict in _BAD, cases

    newest: dict[str, dict[str, VerificationLine]] = {}
    for line in lines:
        of_source = newest.setdefault(line.source, {})
        gpu = line.run.machine.get("gpu", "")
        if gpu not in of_source or rank(line) >= rank(of_source[gpu]):
            of_source[gpu] = line
    chosen = []
    for of in newest.values():
        best = max(of.values(), key=lambda x: (not x.stale, x.run.is_on_gpu, x.run.key))
        chosen += [best, *(x for x in of.values() if x.is_bad and x is not best)]
    return chosen


def _line(
    file: DatasetFile, run: Run, source: str, evidence: SourceEvidence, stale: bool
) -> VerificationLine:
    notes = [evidence.reason] if evidence.reason else []
    if evidence.hit_ratio is not None and evidence.hit_ratio < 1.0:
        notes.append(f"hit ratio {evidence.hit_ratio:.3g}")
    for figure, (low, high) in evidence.figures.items():
        span = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        notes.append(f"{figure} {span}")
    if evidence.not_independent:
        names = ", ".join(evidence.not_independent)
        notes.append(f"{names} taken from the reference: not independent")
    if evidence.not_given:
        notes.append(f"gives no {', '.join(evidence.not_given)}: not compared")
    notes += evidence.rewritten
    if stale:
        notes.append("on another text of the definition")
    verdict = evidence.verdict
    if verdict == SKIPPED:
        verdict = _NEVER_RUN if evidence.needs_other_gpu else _NOT_COMPARED
    figures = evidence if evidence.cases else None
    whom = (file.op_type, file.name, source, verdict)
    return VerificationLine(*whom, stale, run, figures, "; ".join(notes))


def agreed(lines: Iterable[VerificationLine]) -> dict[str, tuple[str, ...]]:
    """Return definition → the ground truths and the oracle that its text agreed with.

    One that gives only some of the outputs says nothing of the others: it is left out,
    as is one whose adapter computes a part of the operation.
    """
    agreed_on: dict[str, set[str]] = {}
    for line in lines:
        is_source = line.source == ORACLE or is_ground_truth(line.source)
        figures = line.figures
        partial = figures is not None and (figures.not_given or figures.rewritten)
        if line.verdict == "PASSED" and not line.stale and is_source and not partial:
            agreed_on.setdefault(line.definition, set()).add(line.source)
    return {name: tuple(sorted(sources)) for name, sources in agreed_on.items()}
