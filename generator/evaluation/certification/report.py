"""The conditions of production kernels as a report: a summary, then each kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from generator.evaluation.certification.result import Certified
from generator.evaluation.conditions.condition import HOLDS, NAMES, SANITIZERS, SKIPPED
from generator.problems.messages import plural
from generator.reports.report import (
    Conclusion,
    Quoted,
    Report,
    Row,
    Section,
    Status,
    Table,
)

_PREFACE = (
    "Production kernels that are ground truth, called as engines call them: "
    "[what each condition is](../conditions.md). `trace-dataset certify --record` "
    "keeps them in `verification/conditions.json`."
)


def certificate(found: Sequence[Certified], *, is_page: bool = False) -> Report:
    """Return the report; it failed where a definition's kernels could not be asked."""
    ordered = sorted(found, key=lambda one: (one.op_type, one.definition))
    kernels = [
        (one, name, value["conditions"])
        for one in ordered
        for name, value in one.kernels.items()
    ]
    counts = {name: Counter[str]() for name in (*NAMES, *SANITIZERS)}
    for _, _, conditions in kernels:
        for name, condition in conditions.items():
            counts[name][condition["verdict"]] += 1
    names = [name for name in counts if name in NAMES or counts[name]]
    verdicts = (HOLDS, "broken", "unsupported", SKIPPED)
    summary = Table(
        [
            Row((name, *(str(of[verdict]) for verdict in verdicts)))
            for name, of in counts.items()
            if of
        ],
        ("condition", *verdicts),
    )
    rows = [
        Row(
            (
                Quoted(one.definition),
                Quoted(kernel),
                *(conditions.get(n, {}).get("verdict", "-") for n in names),
            )
        )
        for one, kernel, conditions in kernels
    ]
    reasons = Counter(
        (kernel.partition("/")[0], name, condition["verdict"], condition["reason"])
        for _, kernel, conditions in kernels
        for name, condition in conditions.items()
        if condition["verdict"] != HOLDS
    )
    why = [
        Row((provider, name, verdict, Quoted(reason), str(count)))
        for (provider, name, verdict, reason), count in sorted(reasons.items())
    ]
    columns = ("definition", "kernel", *names)
    errors = [one for one in found if one.error]
    sections = [
        Section("Summary", [summary]),
        Section("Kernels", [Table(rows, columns, words=columns[:2], keys=2)]),
        Section(
            "Reasons",
            [Table(why, ("provider", "condition", "verdict", "reason", "kernels"))],
        ),
    ]
    if errors:
        failed = [Row((Quoted(e.definition), Quoted(e.error))) for e in errors]
        sections.append(Section("Not asked", [Table(failed, ("definition", "why"))]))
    said = f"{plural(len(kernels), 'kernel')} of {plural(len(found), 'definition')}"
    status = Status.FAILED if errors else Status.PASSED
    return Report(
        title="Conditions of production kernels",
        command="trace-dataset certify --json",
        conclude=lambda: Conclusion(status, said),
        payload={"definitions": [vars(one) for one in ordered]},
        sections=sections,
        preface=_PREFACE if is_page else "",
        is_page=is_page,
        is_said=True,
    )
