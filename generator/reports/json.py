"""A report as one JSON object: its payload."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from generator.reports.report import Report


def pieces(report: Report) -> Iterator[str]:
    """Yield the object piece by piece."""
    separator = "{\n"
    for name, value in report.payload.items():
        yield f"{separator}  {json.dumps(name)}: "
        separator = ",\n"
        if isinstance(value, Iterator):
            yield from _array(value)
        else:
            text = json.dumps(plain(value() if callable(value) else value), indent=2)
            # a text has no newline of its own: JSON escapes it
            yield text.replace("\n", "\n  ")
    yield "\n}\n"


def plain(value: Any) -> Any:
    """Return a value for JSON: of a dataclass its fields, of NaN and infinities text."""
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(plain, value))
    is_odd = isinstance(value, float) and not math.isfinite(value)
    return str(value) if is_odd else value


def _array(items: Iterator[Any]) -> Iterator[str]:
    separator = "\n"
    yield "["
    for item in items:
        yield f"{separator}    {json.dumps(plain(item))}"
        separator = ",\n"
    yield "]" if separator == "\n" else "\n  ]"
