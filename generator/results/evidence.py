"""The evidence that a dataset keeps: which source a definition agreed with, and where.

`verification/*.json` hold it; each is small, written from results files and read by people
in a diff. A definition is known by the hash of its file: evidence for another text of
it is stale.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.dataset.json_file import read_json
from generator.dataset.paths import VERIFICATION, evidence_files
from generator.problems.messages import one_line
from generator.results.rows import ComparisonSummary, summarise
from generator.results.run_results import VERDICTS, Results, TestResult
from generator.testing.obstacle import Kind
from generator.testing.source_names import is_of_itself

FORMAT = 1
SKIPPED = "SKIPPED"
_VERDICTS = (*VERDICTS, SKIPPED)


@dataclass(frozen=True)
class SourceEvidence:
    """Hold what one source says of one definition.

    `verdict` is PASSED, FAILED, ERROR, or SKIPPED where nothing was compared; `reason`
    says why, and `skip_kind` is the value of that skip's Kind. `nmse` is the largest
    over all outputs but the LSE, whose error is `lse`; `hit_ratio` is the smallest;
    `figures` are a policy's, least and greatest. `skipped` counts tests that compared
    nothing beside those that did.
    """

    verdict: str
    cases: int = 0
    skipped: int = 0
    seconds: float = 0.0
    nmse: float | None = None
    lse: float | None = None
    hit_ratio: float | None = None
    figures: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    not_independent: tuple[str, ...] = ()
    reason: str = ""
    skip_kind: str = ""

    @property
    def needs_other_gpu(self) -> bool:
        """Return whether it was skipped because the kernel needs another GPU."""
        return self.skip_kind == Kind.NEEDS_SM


@dataclass(frozen=True)
class DefinitionEvidence:
    """Hold what a run says of one definition; `failed` are tests that compare nothing.

    `sources` maps `oracle`, `flashinfer/fa2`, `recorded` and the like to a Verdict.
    """

    sha256: str
    sources: Mapping[str, SourceEvidence]
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """Hold one day's results on one machine with one set of versions."""

    date: str
    machine: Mapping[str, str]
    definitions: Mapping[str, DefinitionEvidence]

    @property
    def is_on_gpu(self) -> bool:
        """Return whether production kernels could run."""
        return self.machine.get("device") == "cuda"


def runs_of(results: Iterable[Results]) -> list[Run]:
    """Return the runs of results; those of one day and machine are one run."""
    grouped: dict[tuple[Any, ...], list[TestResult]] = {}
    for result in results:
        key = (result.date, tuple(sorted(result.machine.items())))
        grouped.setdefault(key, []).extend(result.tests)
    runs = []
    for (date, machine), tests in sorted(grouped.items()):
        by_name: dict[str, list[TestResult]] = {}
        for test in tests:
            by_name.setdefault(test.definition, []).append(test)
        entries = {name: _entry(of_name) for name, of_name in sorted(by_name.items())}
        runs.append(Run(date, dict(machine), entries))
    return runs


def _entry(tests: Sequence[TestResult]) -> DefinitionEvidence:
    """Return the entry of one definition; of two texts of it, the later one's."""
    sha256 = tests[-1].sha256
    tests = [test for test in tests if test.sha256 == sha256]
    by_source: dict[str, list[TestResult]] = {}
    failed = set()
    for test in tests:
        compared = {record["source"] for record in test.comparisons}
        # a reference held against itself agrees with nobody: a test as any other
        compared = {s for s in compared if not is_of_itself(s)}
        for source in compared or {test.source}:
            if source is not None:
                by_source.setdefault(source, []).append(test)
            elif test.status in ("failed", "error"):
                failed.add(test.function)
    sources = {s: _verdict(s, of_source) for s, of_source in sorted(by_source.items())}
    return DefinitionEvidence(sha256, sources, tuple(sorted(failed)))


def _verdict(source: str, tests: Sequence[TestResult]) -> SourceEvidence:
    records = [r for t in tests for r in t.comparisons if r["source"] == source]
    skips = [test for test in tests if test.status == "skipped"]
    broken = [
        test
        for test in tests
        if test.status in ("failed", "error")
        and all(record["verdict"] == "PASSED" for record in test.comparisons)
    ]
    seconds = round(sum(test.seconds for test in tests), 1)
    if broken:
        reason = broken[0].message
        cases = len({record["case"] for record in records})
        return SourceEvidence("ERROR", cases, len(skips), seconds, reason=reason)
    if not records:
        if not skips:
            return SourceEvidence(
                "ERROR", 0, 0, seconds, reason="passed without a comparison"
            )
        reason, kind = skips[0].message, skips[0].skip_kind
        return SourceEvidence(
            SKIPPED, 0, len(skips), seconds, reason=reason, skip_kind=kind
        )
    (row,) = summarise(records)
    return _of_row(row, len(skips), seconds)


def _of_row(row: ComparisonSummary, skipped: int, seconds: float) -> SourceEvidence:
    nmse = [value for name, value in row.nmse.items() if name != "lse"]
    worst_hit = min(row.hit_ratio.values(), default=None)
    return SourceEvidence(
        row.verdict,
        row.cases,
        skipped,
        seconds,
        _short(max(nmse)) if nmse else None,
        _short(row.max_abs["lse"]) if "lse" in row.max_abs else None,
        _short(worst_hit) if worst_hit is not None else None,
        {name: (_short(a), _short(b)) for name, (a, b) in row.figures.items()},
        row.not_independent,
    )


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def file_name(run: Run) -> str:
    """Return `2026-11-21_nvidia-h200.json`: the day and the kind of machine."""
    machine = run.machine.get("gpu") or run.machine.get("device") or "unknown"
    slug = re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")
    return f"{run.date or 'undated'}_{slug or 'unknown'}.json"


def merge(old: Iterable[Run], new: Iterable[Run]) -> list[Run]:
    """Return the runs of both; where day and machine are the same, the new verdicts.

    Verdicts on sources that only the old run has stay, if the definition is the same.
    """
    merged: dict[tuple[Any, ...], Run] = {}
    for run in (*old, *new):
        key = (run.date, tuple(sorted(run.machine.items())))
        before = merged.get(key)
        entries = dict(before.definitions) if before is not None else {}
        for name, entry in run.definitions.items():
            known = entries.get(name)
            if known is not None and known.sha256 == entry.sha256:
                sources = {**known.sources, **entry.sources}
                entry = DefinitionEvidence(
                    entry.sha256, dict(sorted(sources.items())), entry.failed
                )
            entries[name] = entry
        merged[key] = Run(run.date, run.machine, dict(sorted(entries.items())))
    return [merged[key] for key in sorted(merged)]


def as_text(runs: Iterable[Run]) -> str:
    """Return the text of an evidence file: JSON with one line for each definition."""
    blocks = []
    for run in runs:
        machine = json.dumps(dict(run.machine), sort_keys=True)
        lines = [
            f"    {json.dumps(name)}: {json.dumps(_entry_as_json(entry))}"
            for name, entry in sorted(run.definitions.items())
        ]
        body = ",\n".join(lines)
        blocks.append(
            f'  {{"date": {json.dumps(run.date)},\n   "machine": {machine},\n'
            f'   "definitions": {{\n{body}\n  }}}}'
        )
    inner = ",\n".join(blocks)
    return f'{{"format": {FORMAT}, "runs": [\n{inner}\n]}}\n'


def _entry_as_json(entry: DefinitionEvidence) -> dict[str, Any]:
    sources = {s: _verdict_as_json(v) for s, v in sorted(entry.sources.items())}
    value: dict[str, Any] = {"sha256": entry.sha256, "sources": sources}
    return {**value, "failed": list(entry.failed)} if entry.failed else value


def _verdict_as_json(verdict: SourceEvidence) -> dict[str, Any]:
    """Return the fields that say something; JSON has no NaN, so that is a string."""
    value: dict[str, Any] = {"verdict": verdict.verdict}
    for name in ("cases", "skipped", "seconds", "reason", "skip_kind"):
        if getattr(verdict, name):
            value[name] = getattr(verdict, name)
    for name in ("nmse", "lse", "hit_ratio"):
        if getattr(verdict, name) is not None:
            value[name] = _number(getattr(verdict, name))
    if verdict.figures:
        value["figures"] = {
            name: [_number(low), _number(high)]
            for name, (low, high) in sorted(verdict.figures.items())
        }
    if verdict.not_independent:
        value["not_independent"] = list(verdict.not_independent)
    return value


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def read_evidence(root: Path, file: str) -> list[Run]:
    """Return the runs of an evidence file, a path relative to `root`.

    Raises ValueError, one line, where it is something else.
    """
    read = read_json(root, file)
    if not read.ok or read.problems:
        problem = read.problems[0]
        raise ValueError(f"{file}: {problem.message}")
    try:
        if read.value["format"] != FORMAT:
            raise ValueError(f"format {read.value['format']!r}, known is {FORMAT}")
        return [_run(value) for value in read.value["runs"]]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        text = one_line(f"{type(error).__name__}: {error}", 120)
        message = f"{file} is no evidence of trace-dataset verify ({text})"
        raise ValueError(message) from None


def kept_runs(
    root: Path, on_broken: Callable[[Exception], object] | None = None
) -> list[Run]:
    """Return the runs of all evidence files of a dataset.

    `on_broken` gets what is wrong with a file, one line, and the others are read; without
    it the first such file raises ValueError.
    """
    found: list[Run] = []
    for file in evidence_files(root):
        try:
            found += read_evidence(root, file)
        except (ValueError, RecursionError) as error:
            if on_broken is None:
                raise ValueError(str(error)) from None
            on_broken(error)
    return found


def runs_in(root: Path) -> list[Run]:
    """Return the runs of a foreign dataset's verification/; what is no evidence is none."""
    if (root / VERIFICATION).is_symlink():
        return []
    return kept_runs(root, on_broken=lambda error: None)


def _run(value: Mapping[str, Any]) -> Run:
    machine = {one_line(n): one_line(v, 80) for n, v in value["machine"].items()}
    entries = {name: _read_entry(e) for name, e in value["definitions"].items()}
    return Run(one_line(value["date"], 10), machine, entries)


def _read_entry(value: Mapping[str, Any]) -> DefinitionEvidence:
    sources = {one_line(s, 80): _read_verdict(v) for s, v in value["sources"].items()}
    failed = tuple(one_line(name, 80) for name in value.get("failed", ()))
    return DefinitionEvidence(one_line(value["sha256"], 64), sources, failed)


def _read_verdict(value: Mapping[str, Any]) -> SourceEvidence:
    if value["verdict"] not in _VERDICTS:
        raise ValueError(f"verdict {value['verdict']!r}")
    optional = {
        name: float(value[name])
        for name in ("nmse", "lse", "hit_ratio")
        if name in value
    }
    figures = value.get("figures", {}).items()
    return SourceEvidence(
        value["verdict"],
        int(value.get("cases", 0)),
        int(value.get("skipped", 0)),
        float(value.get("seconds", 0.0)),
        **optional,
        figures={
            one_line(n, 40): (float(low), float(high)) for n, (low, high) in figures
        },
        not_independent=tuple(one_line(n) for n in value.get("not_independent", ())),
        reason=one_line(value.get("reason", ""), 200),
        skip_kind=one_line(value.get("skip_kind", ""), 40),
    )
