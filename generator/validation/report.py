"""What a validation found, as a report."""

from __future__ import annotations

from collections.abc import Iterable

from generator.problems import Problem, Severity
from generator.problems.messages import plural
from generator.reports.report import Conclusion, Report, Status
from generator.rules.catalogue import GROUPS
from generator.validation.validate import Counts


def validation_report(
    problems: Iterable[Problem],
    counts: Counts,
    *,
    prefix: str = "",
    notes: bool = False,
    strict: bool = False,
    hint: str = "",
) -> Report:
    """Return the report of problems as they come; `counts` is right after the last.

    `hint` follows the number of notes where there are some.
    """

    def conclude() -> Conclusion:
        errors, warnings, noted = (counts.found[severity] for severity in Severity)
        failed = errors or (strict and warnings)
        summary = (
            f"{plural(counts.definitions, 'definition')}, "
            f"{plural(counts.workloads, 'workload')}: "
            f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
        )
        if noted:
            summary += f", {plural(noted, 'note')}{hint}"
        return Conclusion(Status.FAILED if failed else Status.PASSED, summary)

    return Report(
        title="Dataset validation",
        command="trace-dataset validate",
        conclude=conclude,
        payload={
            "problems": (problem.as_dict() for problem in problems),
            "counts": lambda: {
                "definitions": counts.definitions,
                "workloads": counts.workloads,
                **{f"{s.value}s": count for s, count in counts.found.items()},
            },
        },
        problems=problems,
        rules=GROUPS,
        prefix=prefix,
        notes=notes,
        strict=strict,
    )
