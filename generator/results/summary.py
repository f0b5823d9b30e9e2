"""Sum up the results of test runs as evidence: a verdict for each definition and source."""

from __future__ import annotations

import math
from collections import defaultdict
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
    runs: dict[Any, Run] = {}
    tests: dict[Any, dict[str, list[TestResult]]] = defaultdict(dict)
    for result in results:
        run = Run(result.date, result.machine, {})
        runs.setdefault(run.key, run)
        for test in result.tests:
            tests[run.key].setdefault(test.definition, []).append(test)
    return [
        Run(
            runs[key].date,
            runs[key].machine,
            {name: _entry(of) for name, of in sorted(tests[key].items())},
        )
        for key in sorted(runs)
    ]


def _entry(tests: Sequence[TestResult]) -> DefinitionEvidence:
    """Return the entry of one definition; of two texts of it, the later one's."""
    sha256 = tests[-1].sha256
    by_source: dict[str, list[TestResult]] = defaultdict(list)
    failed = set()
    for test in tests:
        if test.sha256 != sha256:
            continue
        # a reference held against itself agrees with nobody: a test as any other
        sources = {record["source"] for record in test.comparisons}
        compared = {source for source in sources if not is_of_itself(source)}
        for source in compared or {test.source}:
            if source is not None:
                by_source[source].append(test)
            elif test.is_bad:
                failed.add(test.function)
    verdicts = {
        source: _verdict(source, of) for source, of in sorted(by_source.items())
    }
    return DefinitionEvidence(sha256, verdicts, tuple(sorted(failed)))


def _verdict(source: str, tests: Sequence[TestResult]) -> SourceEvidence:
    """Return the worst of what tests say of one source."""
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
    if not records and skips:
        return SourceEvidence(SKIPPED, *told, skips[0].message, skips[0].skip_kind)
    if not records:
        return SourceEvidence("ERROR", *told, "passed without a comparison")
    lse = [record for record in records if record["output"] == "lse"]
    others = [record for record in records if record["output"] != "lse"]
    hit_ratio = _range("hit_ratio", records)
    names = {name for record in records for name in record} - {*_KNOWN.split()}
    dependent = {
        str(name)
        for record in records
        if isinstance(listed := record.get("not_independent"), list)
        for name in listed
    }
    return SourceEvidence(
        max((record["verdict"] for record in records), key=VERDICTS.index),
        *told,
        nmse=_greatest("nmse", others),
        lse=_greatest("max_abs", lse),
        hit_ratio=hit_ratio[0] if hit_ratio else None,
        figures={
            name: found for name in sorted(names) if (found := _range(name, records))
        },
        not_independent=tuple(sorted(dependent)),
    )


def _greatest(name: str, records: Iterable[Record]) -> float | None:
    found = _range(name, records)
    return found[1] if found else None


def _range(name: str, records: Iterable[Record]) -> tuple[float, float] | None:
    """Return the least and the greatest of a figure; NaN is both where there is one.

    None where no comparison has the figure; true and false are none.
    """
    found = (record.get(name) for record in records)
    values = [float(v) for v in found if v is not None and type(v) in (int, float)]
    if not values:
        return None
    if any(map(math.isnan, values)):
        return math.nan, math.nan
    return float(f"{min(values):.3g}"), float(f"{max(values):.3g}")
