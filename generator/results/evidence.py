"""The evidence that a dataset keeps: which source a definition agreed with, and where.

`verification/*.json` hold it; each is small, written from results files and read by people
in a diff. A definition is known by the hash of what a run of it depends on, `rules.basis`:
evidence for another text of it is stale.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import is_absent
from generator.dataset.lock import locked
from generator.dataset.paths import VERIFICATION, evidence_files
from generator.dataset.schema import foremost, read_checked
from generator.problems import Failure
from generator.problems.messages import one_line
from generator.reports.json import plain
from kernel_judge.obstacle import Kind

FORMAT = 1
SKIPPED = "SKIPPED"
_TEXTS = ("reason", "skip_kind")
# JSON has no NaN and no infinity: these may be strings
_NUMBERS = ("seconds", "nmse", "lse", "hit_ratio")


@dataclass(frozen=True)
class SourceEvidence:
    """The evidence of one source on one definition.

    `verdict` is PASSED, FAILED, ERROR, or SKIPPED where nothing was compared; `reason`
    says why, and `skip_kind` is the value of that skip's Kind. `nmse` is the largest
    over all outputs but the LSE, whose error is `lse`; `hit_ratio` is the smallest;
    `figures` are a policy's, least and greatest. `skipped` counts tests that compared
    nothing beside those that did. `not_given` are outputs that the source does not give,
    which were compared with nothing; `rewritten` says what its adapter computes of the
    kernel's inputs or outputs. `compared` maps each size to its cases; of workloads it
    has their identities (`dataset.workload_identity`).
    """

    verdict: str
    cases: int = 0
    skipped: int = 0
    seconds: float = 0.0
    reason: str = ""
    skip_kind: str = ""
    nmse: float | None = None
    lse: float | None = None
    hit_ratio: float | None = None
    figures: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    not_independent: tuple[str, ...] = ()
    not_given: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    compared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def needs_other_gpu(self) -> bool:
        """Return whether it was skipped because the kernel needs other GPUs."""
        return self.skip_kind in (Kind.NEEDS_SM, Kind.NEEDS_GPUS)


_NOTHING = plain(SourceEvidence(""))


@dataclass(frozen=True)
class DefinitionEvidence:
    """The evidence of a run on one definition; `failed` are tests that compare nothing.

    `sources` maps `oracle`, `flashinfer/fa2`, `recorded` and the like to a Verdict.
    """

    sha256: str
    sources: Mapping[str, SourceEvidence]
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One day's results on one machine with one set of versions."""

    date: str
    machine: Mapping[str, str]
    definitions: Mapping[str, DefinitionEvidence]

    @property
    def is_on_gpu(self) -> bool:
        """Return whether production kernels could run."""
        return self.machine.get("device") == "cuda"

    @property
    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Return what tells runs apart, and orders them: the day and the machine."""
        return self.date, tuple(sorted(self.machine.items()))

    @property
    def device(self) -> str:
        """Return the name of the GPU, or of the kind of device."""
        return self.machine.get("gpu") or self.machine.get("device", "")

    @property
    def file(self) -> str:
        """Return `verification/2026-11-21_nvidia-h200.json`: the day and the device."""
        slug = re.sub(r"[^a-z0-9]+", "-", self.device.lower()).strip("-")
        return f"{VERIFICATION}/{self.date or 'undated'}_{slug or 'unknown'}.json"


def merge(old: Iterable[Run], new: Iterable[Run]) -> list[Run]:
    """Return the runs of both; where day and machine are the same, the new verdicts.

    Verdicts on sources that only the old run has stay, if the definition is the same.
    """
    merged: dict[Any, Run] = {}
    for run in (*old, *new):
        before = merged.get(run.key)
        entries = dict(before.definitions) if before is not None else {}
        for name, entry in run.definitions.items():
            known = entries.get(name)
            if known is not None and known.sha256 == entry.sha256:
                sources = {**known.sources, **entry.sources}
                entry = DefinitionEvidence(entry.sha256, sources, entry.failed)
            entries[name] = entry
        merged[run.key] = Run(run.date, run.machine, entries)
    return [merged[key] for key in sorted(merged)]


def record(root: Path, runs: Iterable[Run]) -> dict[str, set[str]]:
    """Add the runs to a dataset's evidence, each to the file of its day and machine.

    Returns the files, and which definitions each got. Raises OSError, and Failure where
    there is something else than evidence.
    """
    by_file: dict[str, list[Run]] = {}
    for run in runs:
        by_file.setdefault(run.file, []).append(run)
    with locked(root):
        for file, of_file in by_file.items():
            old = read_evidence(root, file) if not is_absent(root, file) else []
            write_below(root, file, as_text(merge(old, of_file)).encode("utf-8"))
    return {
        file: {name for run in of_file for name in run.definitions}
        for file, of_file in by_file.items()
    }


def as_text(runs: Iterable[Run]) -> str:
    """Return the text of an evidence file: JSON with one line for each definition."""
    blocks = []
    for run in runs:
        machine = json.dumps(dict(run.machine), sort_keys=True)
        lines = [
            f"    {json.dumps(name)}: {json.dumps(_entry(entry))}"
            for name, entry in sorted(run.definitions.items())
        ]
        body = ",\n".join(lines)
        blocks.append(
            f'  {{"date": {json.dumps(run.date)},\n   "machine": {machine},\n'
            f'   "definitions": {{\n{body}\n  }}}}'
        )
    inner = ",\n".join(blocks)
    return f'{{"format": {FORMAT}, "runs": [\n{inner}\n]}}\n'


def _entry(entry: DefinitionEvidence) -> dict[str, Any]:
    """Return an entry for JSON, with the fields that say something."""
    sources = {
        source: {n: v for n, v in plain(evidence).items() if v != _NOTHING[n]}
        for source, evidence in sorted(entry.sources.items())
    }
    failed = {"failed": list(entry.failed)} if entry.failed else {}
    return {"sha256": entry.sha256, "sources": sources, **failed}


def read_evidence(root: Path, file: str) -> list[Run]:
    """Return the runs of an evidence file, a path relative to `root`.

    Raises Failure where it is something else.
    """
    read = read_checked(root, file, "evidence")
    if read.problems:
        problem = foremost(read.problems)
        text = one_line(f"{problem.pointer}: {problem.message}".removeprefix(": "), 200)
        raise Failure(f"{file} is no evidence of trace-dataset verify ({text})")
    return [_run(value) for value in read.value["runs"]]


def kept_runs(
    root: Path, on_broken: Callable[[Exception], object] | None = None
) -> list[Run]:
    """Return the runs of all evidence files of a dataset.

    `on_broken` gets what is wrong with a file, one line, and the others are read; without
    it the first such file raises Failure.
    """
    runs: list[Run] = []
    for file in evidence_files(root):
        try:
            runs += read_evidence(root, file)
        except Failure as error:
            if on_broken is None:
                raise
            on_broken(error)
    return runs


def runs_in(root: Path) -> list[Run]:
    """Return the runs of a foreign dataset's verification/; what is no evidence is none."""
    if (root / VERIFICATION).is_symlink():
        return []
    return kept_runs(root, on_broken=lambda error: None)


def _run(value: Mapping[str, Any]) -> Run:
    machine = {one_line(n): one_line(v, 80) for n, v in value["machine"].items()}
    return Run(one_line(value["date"], 10), machine, _Entries(value["definitions"]))


class _Entries(Mapping[str, DefinitionEvidence]):
    """The entries of a run in a file, each made when it is asked for: a review reads few."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._made: dict[str, DefinitionEvidence] = {}

    def __getitem__(self, name: str) -> DefinitionEvidence:
        if name not in self._made:
            entry = self._values[name]
            self._made[name] = DefinitionEvidence(
                one_line(entry["sha256"], 64),
                {one_line(s, 80): _source(v) for s, v in entry["sources"].items()},
                tuple(one_line(test, 80) for test in entry.get("failed", ())),
            )
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _source(value: Mapping[str, Any]) -> SourceEvidence:
    """Return the evidence of a source; its texts are short lines, whatever they were."""
    known: dict[str, Any] = {n: value[n] for n in _NOTHING if n in value}
    known |= {n: one_line(v, 200) for n, v in known.items() if n in _TEXTS}
    known |= {n: float(v) for n, v in known.items() if n in _NUMBERS}
    figures = known.get("figures", {}).items()
    known["figures"] = {one_line(n, 40): tuple(map(float, v)) for n, v in figures}
    for name in ("not_independent", "not_given", "rewritten"):
        known[name] = tuple(one_line(text, 200) for text in known.get(name, ()))
    known["compared"] = {
        one_line(size, 20): tuple(one_line(name, 80) for name in names)
        for size, names in known.get("compared", {}).items()
    }
    return SourceEvidence(**known)
