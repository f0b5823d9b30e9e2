"""Sum up what the tests of a run compared, by definition and source."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.results.run_results import VERDICTS

# of a comparison: what is no figure of its policy
_KNOWN = (
    "definition case source output rows_left_out not_independent verdict findings "
    "elements mismatched max_abs mean_abs max_rel mean_rel nmse cosine norm_ratio "
    "hit_ratio expected_rms worst"
)


@dataclass(frozen=True)
class ComparisonSummary:
    """Sum up all comparisons of one definition with one source.

    `cases` counts distinct cases; `verdict` is the worst one. `nmse` and `max_abs` map
    an output to the largest figure over the cases, `hit_ratio` to the smallest;
    `figures` are those of policies, from the least to the greatest.
    """

    definition: str
    source: str
    cases: int
    verdict: str
    nmse: dict[str, float]
    max_abs: dict[str, float]
    hit_ratio: dict[str, float] = field(default_factory=dict)
    figures: dict[str, tuple[float, float]] = field(default_factory=dict)
    not_independent: tuple[str, ...] = ()


def summarise(comparisons: Iterable[Mapping[str, Any]]) -> list[ComparisonSummary]:
    """Return a row for each definition and source, sorted."""
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in comparisons:
        key = (record["definition"], record["source"])
        grouped.setdefault(key, []).append(record)
    return [
        ComparisonSummary(
            definition,
            source,
            len({record["case"] for record in records}),
            max((r["verdict"] for r in records), key=VERDICTS.index),
            _worst(records, "nmse", 1.0),
            _worst(records, "max_abs", 1.0),
            _worst(records, "hit_ratio", -1.0),
            _figures(records),
            tuple(sorted({str(n) for r in records for n in _dependent(r)})),
        )
        for (definition, source), records in sorted(grouped.items())
    ]


def _dependent(record: Mapping[str, Any]) -> Iterable[Any]:
    names = record.get("not_independent", ())
    return names if isinstance(names, list) else ()


def _worst(
    records: Iterable[Mapping[str, Any]], figure: str, sign: float
) -> dict[str, float]:
    """Return an output's worst figure: the largest, or with sign -1 the smallest."""
    worst: dict[str, float] = {}
    for record in records:
        if figure in record:
            output, value = record["output"], float(record[figure])
            found = worst.get(output, value)
            worst[output] = max(found, value, key=lambda v: _badness(sign * v))
    return worst


def _figures(records: Iterable[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    found: dict[str, list[float]] = {}
    known = _KNOWN.split()
    for record in records:
        for name, value in record.items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if name not in known and number:
                found.setdefault(name, []).append(float(value))
    return {
        name: (min(values, key=_badness), max(values, key=_badness))
        for name, values in sorted(found.items())
    }


def _badness(figure: float) -> float:
    """Return the figure to sort by; nothing is worse than NaN."""
    return math.inf if math.isnan(figure) else figure
