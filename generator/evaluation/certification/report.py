"""The conditions of production kernels as a report: a summary, then each kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from generator.evaluation.certification.coverage import HopperKernel, missing
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


def certificate(
    certified: Sequence[Certified],
    *,
    is_page: bool = False,
    hopper: Mapping[HopperKernel, set[str]] | None = None,
) -> Report:
    """Return the report; it failed where a definition's kernels could not be asked.

    With `hopper`, the kernels that one Hopper GPU can call and their definitions, a
    section has what is on record of none of these.
    """
    ordered = sorted(certified, key=lambda one: (one.op_type, one.definition))
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
    errors = [one for one in certified if one.error]
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
    if hopper is not None:
        absent = missing(hopper, certified)
        count = f"{len(hopper) - len(absent)} of {plural(len(hopper), 'kernel')}"
        share = f"{100.0 * (1.0 - len(absent) / max(len(hopper), 1)):.1f} %"
        rows = [
            Row((Quoted(k.op_type), Quoted(k.source), Quoted(k.symbol))) for k in absent
        ]
        text = (
            f"{count} that one GPU of SM 90 can call are on record, {share}. A kernel is what "
            "an op_type calls of a provider, by the function that a definition's fi_api "
            "names, and the backend; an adapter that computes is none. Missing are:"
        )
        table = Table(rows, ("op_type", "kernel", "function"))
        sections.append(Section("Of Hopper", [table], text))
    said = f"{plural(len(kernels), 'kernel')} of {plural(len(certified), 'definition')}"
    status = Status.FAILED if errors else Status.PASSED
    return Report(
        title="Conditions of production kernels",
        command="trace-dataset certify --json",
        conclusion=Conclusion(status, said),
        payload={"definitions": [vars(one) for one in ordered]},
        sections=sections,
        preface=_PREFACE if is_page else "",
        is_page=is_page,
        is_said=True,
    )
