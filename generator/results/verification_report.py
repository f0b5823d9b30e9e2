"""Report of the comparisons and audits on record of definitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

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
from generator.results.architectures import (
    architectures_section,
    newest_versions,
    stale_versions,
)
from generator.results.audits import (
    ABSENT,
    CAUGHT,
    EQUIVALENT,
    STALE,
    SURVIVED,
    TIMED_OUT,
)
from generator.results.evidence import Run, SourceEvidence
from generator.results.sources import is_ground_truth, is_kernel, is_model
from generator.results.verification import (
    AuditLine,
    Verification,
    VerificationLine,
    agreed,
)
from kernel_judge.provider import providers

# what a run's machine has: the name of each fact, and the head of its column
_FACTS = {
    "sm": "SM",
    "memory_gib": "GiB",
    "driver": "driver",
    "torch": "torch",
    "cuda": "CUDA",
    **{p.module: p.title for p in providers().values() if p.module != "torch"},
    "python": "Python",
}
_RUNS = ("run", "date", "GPU", *_FACTS.values())
_MODELS = "agrees with the model"
LINES = [
    "definition",
    "compared with",
    "verdict",
    "cases",
    "worst NMSE",
    "worst LSE error",
    "note",
]
"""What `line_row` has in its cells."""

_AUDITS = (
    "definition|caught|survived|timed out|equivalent|shorter axes|gen-tests|torch|date"
)
_SURVIVORS = ("definition", "defect", "line before", "line after")
_SHOWN = 10
"""Survivors that are shown of a definition."""

_PREFACE = (
    "Written by `trace-dataset verify --output` from `verification/`, which "
    "`trace-dataset verify --record` writes from the results of test runs. Don't edit."
)
_AUDIT_PREFACE = (
    "Defects that `trace-dataset audit` planted in each reference, one at a time, and how "
    "many of them its tests caught: those that change nothing (equivalent) are none. "
    "`trace-dataset audit --record` keeps the results in `verification/audit.json`."
)


def verification_report(verification: Verification) -> Report:
    """Return the report; the same evidence gives the same one."""
    status = Status.FAILED if verification.failed else Status.PASSED
    numbers = {id(run): number for number, run in enumerate(verification.runs, 1)}
    rows = [Row(_run(number, run)) for number, run in enumerate(verification.runs, 1)]
    sections = [Section("Runs", [Table(rows, _RUNS, words=_RUNS)])]
    sections.append(architectures_section(verification.lines))
    newest = newest_versions(verification.runs)
    by_op: dict[str, list[Row]] = {}
    for line, models in with_models(verification.lines):
        notes = filter(None, [line.note, *stale_versions(line, newest)])
        row = line_row(replace(line, note="; ".join(notes)))
        number = numbers.get(id(line.run))
        run = f"R{number}" if number else ""
        seconds = f"{line.figures.seconds:.1f}" if line.figures is not None else ""
        row = replace(row, cells=(*row.cells, models, run, seconds))
        by_op.setdefault(line.op_type, []).append(row)
    words = ("definition", "compared with", "verdict", "note", _MODELS)
    for op_type, lines in by_op.items():
        table = Table(lines, (*LINES, _MODELS, "run", "s"), words, keys=2)
        sections.append(Section(op_type, [table]))
    return Report(
        title="What the definitions were compared with",
        command="trace-dataset verify --format text",
        conclusion=Conclusion(status, summary(verification)),
        payload={
            "runs": [
                {"run": n, "date": run.date, "machine": dict(run.machine)}
                for n, run in enumerate(verification.runs, 1)
            ],
            "lines": [
                {**line.as_dict(), "run": numbers.get(id(line.run), 0)}
                for line in verification.lines
            ],
            "stale": list(verification.stale),
            "unknown": list(verification.unknown),
            "audits": [line.as_dict() for line in verification.audits],
        },
        sections=[*sections, *_audit(verification)],
        preface=_PREFACE,
        is_page=True,
    )


def with_models(
    lines: Iterable[VerificationLine],
) -> Iterator[tuple[VerificationLine, str]]:
    """Yield the lines that are shown, the first of a definition with its models.

    A definition that agrees with a model of transformers has no line for it; one that
    does not has.
    """
    for _, of_one in groupby(lines, lambda line: (line.op_type, line.definition)):
        every = list(of_one)
        good = [x for x in every if is_model(x.source) and not x.stale and not x.is_bad]
        models = ", ".join(x.source.partition(":")[2] for x in good)
        shown = [line for line in every if line not in good]
        # nothing else is known of it
        shown = shown or [
            replace(good[0], source="", verdict="not compared", figures=None)
        ]
        for line in shown:
            yield line, models
            models = ""


def summary(verification: Verification) -> str:
    """Return in some sentences how many definitions agree with what."""
    names = {line.definition for line in verification.lines}
    sources = agreed(verification.lines)
    kernels = sum(any(map(is_kernel, of_one)) for of_one in sources.values())
    layers = sum(any(map(is_ground_truth, of_one)) for of_one in sources.values())
    failed = {line.definition for line in verification.failed}
    passed = (line for line in verification.lines if line.verdict == "PASSED")
    current = (line for line in passed if not line.stale)
    models = len({line.definition for line in current if is_model(line.source)})
    return (
        f"{plural(len(names), 'definition')}: "
        f"{kernels} agree with a kernel of FlashInfer, SGLang or PyTorch, "
        f"{layers - kernels} more with SGLang's PyTorch layers (an implementation, no "
        f"kernel), {len(sources) - layers} with an independent "
        f"float64 implementation alone (the oracle, which is no ground truth), "
        f"{len(names) - len(sources)} with nothing; {models} agree with the model "
        "that runs them, in transformers; "
        f"{len(failed)} failed somewhere, {len(verification.stale)} stale: of another "
        "reference, interface or constant."
        f"{' ' + _of_audits(verification.audits) if verification.audits else ''}"
    )


def _of_audits(lines: Iterable[AuditLine]) -> str:
    """Return in a sentence what audits found of definitions as they are."""
    states = [line.state for line in lines]
    known = [line.current for line in lines if line.current]
    total = {
        status: sum(audit.counts[status] for audit in known)
        for status in (CAUGHT, SURVIVED, TIMED_OUT)
    }
    return (
        f"Of {plural(sum(total.values()), 'defect')} that `trace-dataset audit` planted "
        f"in {len(known)} of them, the tests caught {total[CAUGHT]}, {total[TIMED_OUT]} "
        f"timed out, {total[SURVIVED]} survived; {plural(states.count(STALE), 'definition')} "
        f"changed since, {states.count(ABSENT)} never audited."
    )


def _run(number: int, run: Run) -> list[str]:
    facts = [run.machine.get(name) or "-" for name in _FACTS]
    return [f"R{number}", run.date, run.device, *facts]


def line_row(line: VerificationLine) -> Row:
    """Return a line of the table of verification as a row of a report."""
    v = line.figures
    status = Status.PASSED if line.verdict == "PASSED" else Status.OPEN
    verdict = line.verdict
    if line.stale:
        status, verdict = Status.OPEN, f"stale: {line.verdict}"
    elif line.is_bad:
        status = Status.FAILED
    cases = nmse = lse = ""
    if v is not None:
        cases = _sizes(v) + (f" (+{v.skipped} skipped)" if v.skipped else "")
        nmse, lse = nmse_of(v.nmse), nmse_of(v.lse)
    named = (line.definition, line.source or "-", verdict)
    return Row((*named, cases, nmse, lse, line.note), status)


def _sizes(evidence: SourceEvidence) -> str:
    """Return how many cases of each size were compared: `5 small, 2 medium, 8 workload`."""
    sizes = [f"{len(names)} {size}" for size, names in evidence.compared.items()]
    return ", ".join(sizes) or str(evidence.cases)


def nmse_of(value: float | None) -> str:
    """Return an NMSE, or another error, in two digits: `3.1e-05`."""
    return "" if value is None else "0" if value == 0.0 else f"{value:.1e}"


def _audit(verification: Verification) -> Iterator[Section]:
    """Yield the section on the audit, if one is on record."""
    if not verification.audits:
        return
    rows = [Row(_audited(line)) for line in verification.audits]
    tables = [Table(rows, _AUDITS.split("|"), words=("definition",))]
    survivors = list(_survivors(verification.audits))
    if survivors:
        tables.append(Table(survivors, _SURVIVORS, _SURVIVORS, title="Survivors"))
    yield Section("Audit", tables, preface=_AUDIT_PREFACE)


def _audited(line: AuditLine) -> list[str]:
    audit = line.audited
    if audit is None:
        return [line.definition, "never audited", *[""] * 7]
    share = f"stale: {audit.share}" if line.state == STALE else audit.share
    counts = [str(audit.counts[s]) for s in (SURVIVED, TIMED_OUT, EQUIVALENT)]
    axes = ", ".join(f"{axis}={length}" for axis, length in audit.reduced.items())
    versions = [audit.gen_tests, audit.torch, audit.date]
    return [line.definition, share, *counts, axes, *versions]


def _survivors(lines: Iterable[AuditLine]) -> Iterator[Row]:
    """Yield definition, name, line before and after of survivors that still count."""
    for line in lines:
        audit = line.current
        if audit is None or not audit.survived:
            continue
        shown = [tuple(one.values()) for one in audit.survivors[:_SHOWN]]
        if audit.survived > len(shown):
            shown.append((f"and {audit.survived - len(shown)} more", "", ""))
        for cells in shown:
            yield Row([Quoted(text) for text in (line.definition, *cells)])
