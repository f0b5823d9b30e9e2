"""Two recordings of the same inputs: where a kernel's answer is another, and how far."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from generator.problems import Failure
from generator.problems.messages import plural, quote
from generator.reports.report import (
    Conclusion,
    Quoted,
    Report,
    Row,
    Section,
    Status,
    Table,
)
from kernel_judge.recording.recording_file import SUFFIX, Recording, read

_COLUMNS = (
    "op_type",
    "kernel",
    "before",
    "after",
    "definitions",
    "outputs",
    "moved",
    "worst NMSE between the two",
    "worst NMSE against the oracle before",
    "and after",
)
_PREFACE = """\
The same inputs, given to a kernel in two versions of its library on the same kind of
GPU: which answers moved, by how much, in which cases. NMSE is the mean of the squared
difference, divided by that of the squared values before. The oracle is an independent
float64 implementation: where an answer moved, its two figures say whether it moved away.
Of a large output a sample of its elements is recorded, and compared.
"""
# a side's recordings: definition → label → the file that has it
Side = dict[str, dict[str, Recording]]


class Unclear(Failure):
    """Raised with one line where two sides can't be compared as named."""


@dataclass(frozen=True)
class Drift:
    """The distance of one output between two recordings, or that there is none.

    `nmse` and `max_abs` are of the second one held against the first;
    `oracle_before` and `oracle_after` are the NMSE of each against the float64 oracle,
    over all elements, None where it was not recorded. `elements` are those stored;
    `nmse` and `max_abs` are of those finite in both, `example` is of one that changed, of
    NaN or an infinity before others: "nan -> 0".
    """

    op_type: str
    definition: str
    case: str
    output: str
    before: str
    after: str
    elements: int
    changed: int
    max_abs: float
    nmse: float
    oracle_before: float | None
    oracle_after: float | None
    example: str = ""


@dataclass(frozen=True)
class RecordingDifferences:
    """The outputs that were compared, and what could not be."""

    compared: tuple[Drift, ...]
    definitions: int
    remarks: tuple[str, ...] = ()

    @property
    def drifts(self) -> tuple[Drift, ...]:
        """Return the outputs that differ."""
        return tuple(drift for drift in self.compared if drift.changed)


def differences_report(
    compared: RecordingDifferences, *, is_page: bool = False
) -> Report:
    """Return the report: a line for each output that differs, a page with its counts."""
    drifts = compared.drifts
    outputs = len(compared.compared)
    status = Status.FAILED if drifts else Status.PASSED
    summary = (
        f"{len(drifts)} of {plural(outputs, 'output')} of "
        f"{plural(compared.definitions, 'definition')} changed"
    )
    moved = Table([_row(drift) for drift in drifts])
    return Report(
        title="Differences between recordings",
        command="trace-dataset record --compare",
        conclusion=Conclusion(status, summary),
        payload={
            "drifts": [asdict(drift) for drift in drifts],
            "outputs": outputs,
            "remarks": list(compared.remarks),
        },
        sections=[
            Section("By kernel", [_by_kernel(compared.compared)]),
            Section("What moved", [moved]),
        ]
        if is_page
        else [Section("", [moved])],
        preface=f"{_PREFACE}\n{summary}." if is_page else "",
        is_page=is_page,
        is_said=True,
    )


def _by_kernel(compared: Sequence[Drift]) -> Table:
    """Return a row for each op_type and kernel: how many outputs moved, and how far."""
    groups: dict[tuple[str, str, str, str], list[Drift]] = defaultdict(list)
    for drift in compared:
        before, after = drift.before, drift.after
        names = (drift.op_type, _source(before), _version(before), _version(after))
        groups[names].append(drift)
    rows = []
    for key, drifts in sorted(groups.items()):
        rows.append(
            Row(
                (
                    *map(Quoted, key),
                    str(len({drift.definition for drift in drifts})),
                    str(len(drifts)),
                    str(sum(drift.changed > 0 for drift in drifts)),
                    _figure(max(drift.nmse for drift in drifts)),
                    _figure(_worst(drift.oracle_before for drift in drifts)),
                    _figure(_worst(drift.oracle_after for drift in drifts)),
                )
            )
        )
    return Table(rows, _COLUMNS, words=_COLUMNS[:4], keys=4)


def _worst(figures: Iterable[float | None]) -> float | None:
    return max((figure for figure in figures if figure is not None), default=None)


def _version(label: str) -> str:
    return label.partition("@")[2].partition("@")[0]


def _figure(value: float | None) -> str:
    return "?" if value is None else f"{value:.3g}"


def _row(drift: Drift) -> Row:
    what = Quoted(f"{drift.definition}  {drift.case}  {drift.output}")
    figures = (
        f"{drift.changed} of {plural(drift.elements, 'element')} changed, by "
        f"{drift.max_abs:.3g} at most, NMSE {drift.nmse:.3g}"
        f"{drift.example and f', such as {drift.example}'}; against the oracle "
        f"{_figure(drift.oracle_before)} -> {_figure(drift.oracle_after)}  "
        f"({drift.before} -> {drift.after})"
    )
    return Row((what, figures), Status.FAILED)


def read_side(place: str) -> Side:
    """Return the recordings of a file or a folder; `PLACE#TEXT` takes some labels.

    Raises Unclear, Damaged and OSError.
    """
    name, _, wanted = place.partition("#")
    path = Path(name)
    if path.is_dir():
        files = sorted(path.rglob(f"*{SUFFIX}"))
    elif path.is_file():
        files = [path]
    else:
        raise Unclear(f"There is no file or folder {quote(name, 200)}.")
    side: Side = defaultdict(dict)
    for file in files:
        recording = read(file)
        for label in recording.body["recordings"]:
            if wanted in label:
                side[recording.body["definition"]][label] = recording
    if not side:
        about = f" with {wanted!r} in its label" if wanted else ""
        raise Unclear(f"{name} has no recording{about}.")
    return side


def compare(before: Side, after: Side) -> RecordingDifferences:
    """Return how two sides differ in what both have. Raises Unclear."""
    drifts: list[Drift] = []
    remarks: list[str] = []
    definitions = 0
    for definition in sorted(set(before) & set(after)):
        first, second = before[definition], after[definition]
        pairs = _pairs(definition, list(first), list(second))
        definitions += bool(pairs)
        for a, b in pairs:
            if a == b and first[a] is second[b]:
                continue
            for difference in _differences(definition, first[a], a, second[b], b):
                if isinstance(difference, str):
                    remarks.append(difference)
                else:
                    drifts.append(difference)
    for definition in sorted(set(before) ^ set(after)):
        remarks.append(f"{definition} is in one of the two alone")
    return RecordingDifferences(tuple(drifts), definitions, tuple(remarks))


def _pairs(
    definition: str, first: Sequence[str], second: Sequence[str]
) -> list[tuple[str, str]]:
    """Return which label is held against which: those of one source, or the only two."""
    if len(first) == len(second) == 1:
        return [(first[0], second[0])]
    sources = sorted({_source(a) for a in first} & {_source(b) for b in second})
    pairs = []
    for source in sources:
        sides = [[n for n in side if _source(n) == source] for side in (first, second)]
        for labels in sides:
            if len(labels) > 1:
                raise Unclear(
                    f"{definition} has {' and '.join(labels)}: choose by PLACE#TEXT, "
                    "where TEXT is a part of the label."
                )
        pairs.append((sides[0][0], sides[1][0]))
    return pairs


def _source(label: str) -> str:
    return label.partition("@")[0]


def _differences(
    definition: str, first: Recording, a: str, second: Recording, b: str
) -> Iterator[Drift | str]:
    """Yield a Drift for each output that both have, or why it can't be compared."""
    of_first = first.body["recordings"][a]["cases"]
    of_second = second.body["recordings"][b]["cases"]
    for case in sorted(set(of_first) & set(of_second)):
        if first.body["cases"][case] != second.body["cases"][case]:
            yield f"{definition}, {case}: recorded of other inputs"
            continue
        for output in of_first[case]:
            entries = of_first[case][output], of_second[case].get(output)
            bare = [_without_oracle(entry) for entry in entries]
            if bare[0] != bare[1]:
                yield f"{definition}, {case}, {output!r}: other elements are stored"
                continue
            values = _values(first, a, case, output), _values(second, b, case, output)
            names = (first.body["op_type"], definition, case, output, a, b)
            yield _drift(names, values, entries)


def _without_oracle(entry: dict[str, Any] | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    return {key: value for key, value in entry.items() if key != "oracle"}


def _values(recording: Recording, label: str, case: str, output: str) -> torch.Tensor:
    entry = recording.body["recordings"][label]["cases"][case][output]
    if "parts" not in entry:
        return recording.stored(label, case, output)
    parts = recording.parts(label, case, output)
    return torch.cat([parts[name].double().reshape(-1) for name in sorted(parts)])


def _drift(
    names: tuple[str, str, str, str, str, str],
    values: tuple[torch.Tensor, torch.Tensor],
    entries: Sequence[Any],
) -> Drift:
    a, b = (value.double() for value in values)
    if a.shape != b.shape:
        # parts of a policy may have any length
        return Drift(*names, a.numel(), a.numel(), math.inf, math.inf, None, None)
    changed = ~((a == b) | (a.isnan() & b.isnan()))
    finite = a.isfinite() & b.isfinite()
    strange = changed & ~finite
    shown = strange if bool(strange.any()) else changed
    error, power = (b - a)[finite], float(a[finite].square().sum())
    squared = float(error.square().sum())
    figures = [(entry.get("oracle") or {}).get("nmse") for entry in entries]
    return Drift(
        *names,
        elements=a.numel(),
        changed=int(changed.sum()),
        max_abs=float(error.abs().max()) if error.numel() else 0.0,
        nmse=squared / power if power else (0.0 if squared == 0 else math.inf),
        oracle_before=figures[0],
        oracle_after=figures[1],
        example=_example(a[shown], b[shown]),
    )


def _example(before: torch.Tensor, after: torch.Tensor) -> str:
    if not before.numel():
        return ""
    return f"{float(before[0]):.6g} -> {float(after[0]):.6g}"
