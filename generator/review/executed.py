"""Results of an executed run, and the comparisons of its tests: bounded, inert."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from generator.problems.messages import one_line
from generator.results.evidence import SKIPPED
from generator.results.run_results import ErrorMap, TestResult, read_error_map
from generator.results.sources import OWN_TESTS, is_live_kernel

MOST = 2000
_FINDINGS = 8


@dataclass(frozen=True)
class ExecutedComparison:
    """The result of one test for one output against one source.

    `verdict` is PASSED, FAILED, ERROR or SKIPPED; for a test that compared nothing,
    `output` is empty. Figures are None where there are none; they may be NaN.
    """

    definition: str
    source: str
    case: str
    output: str
    verdict: str
    findings: tuple[str, ...] = ()
    nmse: float | None = None
    hit_ratio: float | None = None
    where: ErrorMap | None = None

    @property
    def is_bad(self) -> bool:
        """Return whether it is a failure of the definition."""
        return self.verdict not in ("PASSED", SKIPPED)

    @cached_property
    def worst(self) -> float | None:
        """Return the largest error in units of what is allowed, where it is known."""
        ratios = self.where.ratios if self.where is not None else {}
        return max(ratios.values(), default=None)


@dataclass(frozen=True)
class Executed:
    """The results of the reference tests of the changed definitions.

    `problems` are reasons not to believe a pass; a failure is always believed.
    `layers` are what the sandbox could not put up.
    """

    device: str
    passed: int = 0
    failed: tuple[str, ...] = ()
    skipped: int = 0
    problems: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    seconds: float = 0.0
    comparisons: tuple[ExecutedComparison, ...] = ()


def comparisons_of(
    tests: Iterable[TestResult], names: Collection[str]
) -> tuple[ExecutedComparison, ...]:
    """Return what a run compared of some definitions, what is bad first.

    Raises ValueError where a record is damaged. Of tests that were skipped for the same
    reason one is kept.
    """
    comparisons = dict.fromkeys(
        comparison
        for test in tests
        if test.definition in names
        for comparison in _of_test(test)
    )
    return tuple(sorted(comparisons, key=lambda c: not c.is_bad)[:MOST])


def agreed_with_kernels(tests: Iterable[TestResult]) -> tuple[str, ...]:
    """Return the definitions that agreed with a kernel in a run."""
    met = {
        test.definition
        for test in tests
        for record in test.comparisons
        # a recording comes with the dataset: it is no kernel that was asked
        if is_live_kernel(record["source"])
        and record["verdict"] == "PASSED"
        # nor is one that lacks an output, or got something else than the inputs
        and not (record.get("not_given") or record.get("rewritten"))
    }
    return tuple(sorted(met))


def _of_test(test: TestResult) -> Iterator[ExecutedComparison]:
    for record in test.comparisons:
        if record["definition"] == test.definition:
            yield _of_record(record)
    definition, message = one_line(test.definition, 200), (test.message,)
    source = one_line(OWN_TESTS if test.source is None else test.source, 80)
    if test.is_broken:
        case = one_line(test.function, 80)
        yield ExecutedComparison(definition, source, case, "", "ERROR", message)
    elif test.status == "skipped" and test.source is not None:
        yield ExecutedComparison(definition, source, "", "", SKIPPED, message)


def _of_record(record: Mapping[str, Any]) -> ExecutedComparison:
    findings = record.get("findings")
    listed = findings[:_FINDINGS] if isinstance(findings, list) else []
    where = record.get("where")
    return ExecutedComparison(
        one_line(record["definition"], 200),
        one_line(record["source"], 80),
        one_line(record["case"], 120),
        one_line(record["output"], 80),
        record["verdict"],
        tuple(one_line(str(finding), 300) for finding in listed),
        record.get("nmse"),
        record.get("hit_ratio"),
        None if where is None else read_error_map(where),
    )
