"""A report as one JSON object: its payload."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
            text = json.dumps(value() if callable(value) else value, indent=2)
            # a text has no newline of its own: JSON escapes it
            yield text.replace("\n", "\n  ")
    yield "\n}\n"


def _array(items: Iterator[Any]) -> Iterator[str]:
    separator = "\n"
    yield "["
    for item in items:
        yield f"{separator}    {json.dumps(item)}"
        separator = ",\n"
    yield "]" if separator == "\n" else "\n  ]"
