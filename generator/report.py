"""What a run compared, read back from its JUnit file."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_VERDICTS = ("PASSED", "FAILED", "ERROR")


@dataclass(frozen=True)
class Row:
    """Sum up all comparisons of one definition with one source.

    `cases` counts distinct cases; `verdict` is the worst one. `nmse` and `max_abs` map
    an output to the largest figure over the cases.
    """

    definition: str
    source: str
    cases: int
    verdict: str
    nmse: dict[str, float]
    max_abs: dict[str, float]


def read_comparisons(junit: Path) -> Iterator[dict[str, Any]]:
    """Yield the comparisons that the tests recorded, in the file's order.

    Raises OSError where the file can't be read, ValueError where it is not JUnit XML.
    """
    try:
        root = ET.parse(junit).getroot()
    except ET.ParseError as error:
        raise ValueError(f"{junit} is not JUnit XML: {error}") from None
    for item in root.iter("property"):
        if item.get("name") == "comparison":
            yield json.loads(item.get("value", ""))


def summarise(comparisons: Iterable[dict[str, Any]]) -> list[Row]:
    """Return a row for each definition and source, sorted."""
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in comparisons:
        key = (record["definition"], record["source"])
        grouped.setdefault(key, []).append(record)
    return [
        Row(
            definition,
            source,
            len({record["case"] for record in records}),
            max((r["verdict"] for r in records), key=_VERDICTS.index),
            _largest(records, "nmse"),
            _largest(records, "max_abs"),
        )
        for (definition, source), records in sorted(grouped.items())
    ]


def _largest(records: Iterable[dict[str, Any]], figure: str) -> dict[str, float]:
    largest: dict[str, float] = {}
    for record in records:
        if figure in record:
            output, value = record["output"], record[figure]
            largest[output] = max(largest.get(output, value), value, key=_badness)
    return largest


def _badness(figure: float) -> float:
    """Return the figure to sort by; nothing is worse than NaN."""
    return math.inf if math.isnan(figure) else figure


def markdown_table(rows: Iterable[Row]) -> str:
    """Return the rows as a Markdown table; LSE, where there is one, by its error."""
    lines = [
        "| definition | compared with | cases | verdict | worst NMSE | worst LSE error |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        nmse = max((v for k, v in row.nmse.items() if k != "lse"), default=0.0)
        lse = f"{row.max_abs['lse']:.1e}" if "lse" in row.max_abs else ""
        lines.append(
            f"| {row.definition} | {row.source} | {row.cases} | {row.verdict} "
            f"| {nmse:.1e} | {lse} |"
        )
    return "\n".join(lines) + "\n"
