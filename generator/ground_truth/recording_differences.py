"""Two recordings of the same inputs: where a kernel's answer is another, and how far."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
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
from generator.testing.recording_file import SUFFIX, Recording, read

# a side's recordings: definition → label → the file that has it
Side = dict[str, dict[str, Recording]]


class Unclear(Failure):
    """Say in one line why two sides can't be compared as they were named."""


@dataclass(frozen=True)
class Drift:
    """Tell how one output differs between two recordings.

    `nmse` and `max_abs` are of the second one held against the first;
    `oracle_before` and `oracle_after` are the NMSE of each against the float64 oracle,
    over all elements, None where it was not recorded. `elements` are those stored.
    """

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


@dataclass(frozen=True)
class RecordingDifferences:
    """Hold the outputs that differ, how many were compared, and what could not be."""

    drifts: tuple[Drift, ...]
    outputs: int
    definitions: int
    remarks: tuple[str, ...]


def differences_report(compared: RecordingDifferences) -> Report:
    """Return the report: a line for each output that differs."""
    drifts = compared.drifts
    status = Status.FAILED if drifts else Status.PASSED
    summary = (
        f"{len(drifts)} of {plural(compared.outputs, 'output')} of "
        f"{plural(compared.definitions, 'definition')} changed"
    )
    return Report(
        title="Differences between recordings",
        command="trace-dataset record --compare",
        conclude=lambda: Conclusion(status, summary),
        payload={
            "drifts": [asdict(drift) for drift in drifts],
            "outputs": compared.outputs,
            "remarks": list(compared.remarks),
        },
        sections=[Section("", [Table([_row(drift) for drift in drifts])])],
        is_said=True,
    )


def _row(drift: Drift) -> Row:
    def figure(value: float | None) -> str:
        return "?" if value is None else f"{value:.3g}"

    what = Quoted(f"{drift.definition}  {drift.case}  {drift.output}")
    figures = (
        f"{drift.changed} of {plural(drift.elements, 'element')} changed, by "
        f"{drift.max_abs:.3g} at most, NMSE {drift.nmse:.3g}; against the oracle "
        f"{figure(drift.oracle_before)} -> {figure(drift.oracle_after)}  "
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
    outputs = definitions = 0
    for definition in sorted(set(before) & set(after)):
        first, second = before[definition], after[definition]
        pairs = _pairs(definition, list(first), list(second))
        definitions += bool(pairs)
        for a, b in pairs:
            if a == b and first[a] is second[b]:
                continue
            for found in _differences(definition, first[a], a, second[b], b):
                if isinstance(found, str):
                    remarks.append(found)
                    continue
                outputs += 1
                if found.changed:
                    drifts.append(found)
    for definition in sorted(set(before) ^ set(after)):
        remarks.append(f"{definition} is in one of the two alone")
    return RecordingDifferences(tuple(drifts), outputs, definitions, tuple(remarks))


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
            kept = [_without_oracle(entry) for entry in entries]
            if kept[0] != kept[1]:
                yield f"{definition}, {case}, {output!r}: other elements are stored"
                continue
            values = _values(first, a, case, output), _values(second, b, case, output)
            yield _drift((definition, case, output, a, b), values, entries)


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
    names: tuple[str, str, str, str, str],
    values: tuple[torch.Tensor, torch.Tensor],
    entries: Sequence[Any],
) -> Drift:
    a, b = (value.double() for value in values)
    if a.shape != b.shape:
        # parts of a policy may have any length
        return Drift(*names, a.numel(), a.numel(), math.inf, math.inf, None, None)
    changed = ~((a == b) | (a.isnan() & b.isnan()))
    finite = a.isfinite() & b.isfinite()
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
    )
