"""The limits that each op_type's cases cross, and what the audit of limits caught."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from generator.dataset.definition import LoadedDefinition
from generator.dataset.paths import LIMITS_KEPT
from generator.reports import printed
from generator.reports.report import Conclusion, Report, Row, Section, Status, Table
from generator.results.audits import (
    CAUGHT,
    SURVIVED,
    TIMED_OUT,
    Audited,
    read_audits,
)
from generator.rules.basis import basis_of
from generator.rules.load import load_definitions
from generator.rules.subjects import subject_of
from generator.running.free_memory import needed_bytes
from generator.running.workloads import LIMITS_BYTES
from kernel_judge.definition import LIMITS
from kernel_judge.inputs.memory import tensor_bytes

PAGE = "docs/generated/limits.md"
_GIB = 2**30
_FEW_GIB = 24
_COLUMNS = (
    "op_type|definitions|audited|texts|texts audited|defects|caught|timed out|survived"
)
_SIZES = "op_type|largest axes of its cases|cases|cases of 32 MiB at most"
_PREFACE = """\
A defect is right up to a limit: the first 2, 4, 8 … rows, positions, pages or segments, to the
largest of the definition's workloads; scales and weights within 1, 2, 4, 8 powers of two of the
usual. `trace-dataset audit --limits --record` plants them; [limits.md](../limits.md) says how
cases cross them. Definitions of one reference text differ in sizes alone: one of each was
audited first. A result for another text of a definition than it has now is not counted.
"""


@dataclass
class OpTypeLimits:
    """An op_type's cases of the size `limits`, and the fate of its planted defects."""

    names: list[str] = field(default_factory=list)
    audited: list[Audited] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)
    texts_audited: set[str] = field(default_factory=set)
    axes: dict[str, int] = field(default_factory=dict)
    cases: int = 0
    small: int = 0
    survivors: list[tuple[str, str]] = field(default_factory=list)
    beyond: list[tuple[str, str, float]] = field(default_factory=list)


def limits_page(root: Path) -> str:
    """Return the page in Markdown. Raises Failure where limits.json can't be read."""
    audits = read_audits(root, LIMITS_KEPT) or {}
    by_type: dict[str, OpTypeLimits] = {}
    for definition in load_definitions(root).definitions:
        known = by_type.setdefault(definition.op_type, OpTypeLimits())
        _add(known, definition, audits.get(definition.name))
    return "".join(printed(_report(by_type), "markdown"))


def _add(
    known: OpTypeLimits, definition: LoadedDefinition, audit: Audited | None
) -> None:
    """Add one definition's cases, and its audit where that is of its text."""
    known.names.append(definition.name)
    known.texts.add(definition.text)
    if audit is not None and audit.sha256 == basis_of(definition):
        known.audited.append(audit)
        known.texts_audited.add(definition.text)
        known.survivors += [(definition.name, s["name"]) for s in audit.survivors]
    subject = subject_of(definition)
    for case in subject.cases((LIMITS,)):
        known.cases += 1
        known.small += tensor_bytes(subject.definition, case) <= LIMITS_BYTES
        needed = needed_bytes(subject.definition, case, subject.op.peak_bytes) / _GIB
        if needed > _FEW_GIB:
            known.beyond.append((definition.name, case.name, needed))
        for axis, length in case.axes.items():
            known.axes[axis] = max(length, known.axes.get(axis, 0))


def _report(by_type: Mapping[str, OpTypeLimits]) -> Report:
    rows = [Row((op_type, *_counts([one]))) for op_type, one in by_type.items()]
    totals = ("all", *_counts(by_type.values()))
    rows.append(Row(totals))
    sizes = [
        Row((op_type, _axes(one), str(one.cases), str(one.small)))
        for op_type, one in by_type.items()
    ]
    return Report(
        title="Limits that cases cross",
        command="trace-dataset audit --limits",
        conclusion=Conclusion(Status.PASSED, ""),
        payload={},
        is_page=True,
        is_said=True,
        preface=f"Written by `tools/build_pages.py`. Don't edit.\n\n{_PREFACE}",
        sections=[
            Section(
                "Defects that are right up to a limit",
                [Table(rows, _COLUMNS.split("|"), words=("op_type",))],
            ),
            _listed(
                "What survived",
                "op_type|definition|defect",
                [(o, *s) for o, one in by_type.items() for s in one.survivors],
            ),
            Section(
                "Cases",
                [Table(sizes, _SIZES.split("|"), words=("op_type", _AXES))],
            ),
            _listed(
                f"Beyond {_FEW_GIB} GiB",
                "op_type|case|definitions|GiB, at most",
                [row for o, one in by_type.items() for row in _beyond(o, one)],
                "A run may need eight times a case's tensors, or what the op says. These "
                "are asked where a machine or a GPU holds them.",
            ),
        ],
    )


_AXES = _SIZES.split("|")[1]


def _counts(every: Iterable[OpTypeLimits]) -> tuple[str, ...]:
    ones = [*every]
    audits = [audit for one in ones for audit in one.audited]
    numbers = [
        sum(len(one.names) for one in ones),
        len(audits),
        sum(len(one.texts) for one in ones),
        sum(len(one.texts_audited) for one in ones),
        sum(audit.defects for audit in audits),
    ]
    for status in (CAUGHT, TIMED_OUT, SURVIVED):
        numbers.append(sum(audit.counts[status] for audit in audits))
    return tuple(map(str, numbers))


def _axes(one: OpTypeLimits) -> str:
    return ", ".join(f"{axis} {length:,}" for axis, length in one.axes.items())


def _beyond(op_type: str, one: OpTypeLimits) -> Iterator[tuple[str, ...]]:
    for case in dict.fromkeys(name for _, name, _ in one.beyond):
        sizes = [size for _, name, size in one.beyond if name == case]
        yield op_type, case, str(len(sizes)), str(round(max(sizes)))


def _listed(
    title: str, columns: str, rows: Sequence[tuple[str, ...]], preface: str = ""
) -> Section:
    names = columns.split("|")
    table = Table([Row(row) for row in rows], names, words=names)
    return Section(
        title, [table] if rows else [], preface=preface if rows else "Nothing."
    )
