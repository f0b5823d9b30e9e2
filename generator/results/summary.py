"""Sum up the results of test runs as evidence: a verdict for each definition and source."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from generator.results.evidence import SKIPPED, DefinitionEvidence, Run, SourceEvidence
from generator.results.run_results import VERDICTS, Results, TestResult
from generator.testing.source_names import is_of_itself

# of a comparison: what is no figure of its policy
_KNOWN = (
    "definition case source output rows_left_out not_independent verdict findings "
    "elements mismatched max_abs mean_abs max_rel mean_rel nmse cosine norm_ratio "
    "hit_ratio expected_rms worst"
)

Record = Mapping[str, Any]


def runs_of(results: Iterable[Results]) -> list[Run]:
    """Return the runs of results; those of one day and machine are one run."""
    grouped: dict[Any, tuple[Run, dict[str, list[TestResult]]]] = {}
    for result in results:
        run = Run(result.date, result.machine, {})
        _, by_name = grouped.setdefault(run.key, (run, {}))
        for test in result.tests:
            by_name.setdefault(test.definition, []).append(test)
    return [
        Run(run.date, run.machine, {n: _entry(by_name[n]) for n in sorted(by_name)})
        for _, (run, by_name) in sorted(grouped.items(), key=lambda item: item[0])
    ]


def _entry(tests: Sequence[TestResult]) -> DefinitionEvidence:
    """Return the entry of one definition; of two texts of it, the later one's."""
    sha256 = tests[-1].sha256
    by_source: dict[str, list[TestResult]] = {}
    failed = set()
    for test in tests:
        if test.sha256 != sha256:
            continue
        # a reference held against itself agrees with nobody: a test as any other
        sources = {record["source"] for record in test.comparisons}
        compared = {source for source in sources if not is_of_itself(source)}
        for source in compared or {test.source}:
            if source is not None:
                by_source.setdefault(source, []).append(test)
            elif test.is_bad:
                failed.add(test.function)
    verdicts = {s: _verdict(s, by_source[s]) for s in sorted(by_source)}
    return DefinitionEvidence(sha256, verdicts, tuple(sorted(failed)))


def _verdict(source: str, tests: Sequence[TestResult]) -> SourceEvidence:
    records = [r for t in tests for r in t.comparisons if r["source"] == source]
    skips = [test for test in tests if test.status == "skipped"]
    broken = [
        test
        for test in tests
        if test.is_bad and all(r["verdict"] == "PASSED" for r in test.comparisons)
    ]
    cases = len({record["case"] for record in records})
    told = (cases, len(skips), round(sum(test.seconds for test in tests), 1))
    if broken:
        return SourceEvidence("ERROR", *told, reason=broken[0].message)
    if records:
        return _compared(records, *told)
    if skips:
        return SourceEvidence(SKIPPED, *told, skips[0].message, skips[0].skip_kind)
    return SourceEvidence("ERROR", *told, "passed without a comparison")


def _compared(
    records: Sequence[Record], cases: int, skipped: int, seconds: float
) -> SourceEvidence:
    """Return the worst of what was compared with one source."""
    lse = [record for record in records if record["output"] == "lse"]
    nmse = _values("nmse", [record for record in records if record["output"] != "lse"])
    hits = _values("hit_ratio", records)
    known = _KNOWN.split()
    names = sorted({name for record in records for name in record} - {*known})
    figures = {name: v for name in names if (v := _values(name, records))}
    dependent = {
        str(name)
        for record in records
        if isinstance(listed := record.get("not_independent"), list)
        for name in listed
    }
    return SourceEvidence(
        max((record["verdict"] for record in records), key=VERDICTS.index),
        cases,
        skipped,
        seconds,
        nmse=_most(nmse),
        lse=_most(_values("max_abs", lse)),
        hit_ratio=_least(hits),
        figures={
            name: (_rounded(min(v, key=_badness)), _rounded(max(v, key=_badness)))
            for name, v in figures.items()
        },
        not_independent=tuple(sorted(dependent)),
    )


def _values(name: str, records: Iterable[Record]) -> list[float]:
    """Return a figure of the comparisons that have it; true and false are none."""
    found = (record.get(name) for record in records)
    return [
        float(value)
        for value in found
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]


def _badness(figure: float) -> float:
    """Return the figure to sort by; nothing is worse than NaN."""
    return math.inf if math.isnan(figure) else figure


def _most(values: Sequence[float]) -> float | None:
    return _rounded(max(values, key=_badness)) if values else None


def _least(values: Sequence[float]) -> float | None:
    return _rounded(max(values, key=lambda v: _badness(-v))) if values else None


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
