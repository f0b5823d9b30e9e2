"""The table of verification as text: a Markdown document, and plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from generator import audit_lines
from generator.compared_with import is_ground_truth
from generator.evidence import Run
from generator.verification import Line, Table, agreed
from generator.wording import plural

_RUN_FACTS = ("sm", "memory_gib", "driver", "torch", "cuda", "flashinfer", "sglang")
_PREFACE = (
    "Written by `trace-dataset verify --output` from `verification/`, which "
    "`trace-dataset verify --record` writes from JUnit files. Don't edit."
)
_AUDIT_PREFACE = (
    "Defects that `trace-dataset audit` planted in each reference, one at a time, and how "
    "many of them its tests caught: those that change nothing (equivalent) are none. "
    "`trace-dataset audit --record` keeps the results in `verification/audit.json`."
)


def markdown(table: Table) -> str:
    """Return the table as a Markdown document; the same evidence gives the same text."""
    parts = [
        "# What the definitions were compared with",
        _PREFACE,
        summary(table),
        "## Runs",
        _rows(
            "run|date|GPU|SM|GiB|driver|torch|CUDA|FlashInfer|SGLang|Python",
            [_run_cells(n, run) for n, run in enumerate(table.runs, 1)],
        ),
    ]
    by_op: dict[str, list[Line]] = {}
    for line in table.lines:
        by_op.setdefault(line.op_type, []).append(line)
    for op_type, lines in by_op.items():
        parts += [f"## {op_type}", line_table(lines)]
    return "\n\n".join([*parts, *_audit(table)]) + "\n"


def line_table(lines: Iterable[Line]) -> str:
    """Return lines of the table as a Markdown table."""
    head = (
        "definition|compared with|verdict|cases|worst NMSE|worst LSE error|note|run|s"
    )
    return _rows(head, [_line_cells(line) for line in lines])


def _audit(table: Table) -> Iterator[str]:
    """Yield the section on the audit, if one is on record."""
    if not table.audits:
        return
    yield "## Audit"
    yield _AUDIT_PREFACE
    yield _rows(audit_lines.HEAD, [audit_lines.cells(line) for line in table.audits])
    found = list(audit_lines.survivors(table.audits))
    if found:
        from generator.reports.markdown import inert

        yield "### Survivors"
        # the lines are of a dataset's code: nothing in them may be markup
        cells = [[inert(text) if text else "" for text in row] for row in found]
        yield _rows("definition|defect|line before|line after", cells, str)


def summary(table: Table) -> str:
    """Return in some sentences how many definitions agree with what."""
    names = {line.definition for line in table.lines}
    sources = agreed(table.lines)
    kernels = sum(any(map(is_ground_truth, of_one)) for of_one in sources.values())
    failed = {line.definition for line in table.failed}
    return (
        f"{plural(len(names), 'definition')}: "
        f"{kernels} agree with FlashInfer, SGLang or PyTorch, {len(sources) - kernels} "
        f"with an independent "
        f"float64 implementation alone (the oracle, which is no ground truth), "
        f"{len(names) - len(sources)} with nothing; "
        f"{len(failed)} failed somewhere, {len(table.stale)} stale."
        f"{' ' + audit_lines.summary(table.audits) if table.audits else ''}"
    )


def _run_cells(number: int, run: Run) -> list[str]:
    gpu = run.machine.get("gpu") or run.machine.get("device", "")
    of_machine = [run.machine.get(name) or "-" for name in (*_RUN_FACTS, "python")]
    return [f"R{number}", run.date, gpu, *of_machine]


def _line_cells(line: Line) -> list[str]:
    v = line.figures
    verdict = f"stale: {line.verdict}" if line.stale else line.verdict
    cases = nmse = lse = seconds = ""
    if v is not None:
        cases = f"{v.cases} (+{v.skipped} skipped)" if v.skipped else str(v.cases)
        nmse, lse, seconds = _figure(v.nmse), _figure(v.lse), f"{v.seconds:.1f}"
    run = f"R{line.run}" if line.run else ""
    source = line.source or "-"
    return [line.definition, source, verdict, cases, nmse, lse, line.note, run, seconds]


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return "0" if value == 0.0 else f"{value:.1e}"


def _cell(text: str) -> str:
    """Return a cell's text; what came from a file must not end it or be markup."""
    for mark, shown in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("`", "\\`")):
        text = text.replace(mark, shown)
    return text


def _rows(
    head: str, rows: Iterable[Sequence[str]], cell: Callable[[str], str] = _cell
) -> str:
    names = head.split("|")
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    lines += [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return "\n".join(lines)


def as_json(table: Table) -> Mapping[str, Any]:
    """Return the table as plain values."""
    return {
        "runs": [
            {"run": n, "date": run.date, "machine": dict(run.machine)}
            for n, run in enumerate(table.runs, 1)
        ],
        "lines": [line.as_dict() for line in table.lines],
        "stale": list(table.stale),
        "unknown": list(table.unknown),
        "audits": [line.as_dict() for line in table.audits],
    }
