"""Axes of workloads captured from real inference.

An op_type keeps them in `captured.json`: of each captured definition `columns`, the names
of the values, `lines` of values, and `scalars`, those columns that are inputs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from generator.ops.registry import op_folder


@dataclass(frozen=True)
class CapturedWorkload:
    """One captured workload; `scalars` are inputs by name."""

    uuid: str
    axes: Mapping[str, int]
    sm_scale: float | None = None
    scalars: Mapping[str, float] = field(default_factory=dict)


def captured_lines(op_type: str, definition: str) -> tuple[CapturedWorkload, ...]:
    """Return a definition's captured workloads, in the order they were captured."""
    table = _tables(op_type)[definition]
    columns, scalars = table["columns"], table.get("scalars", ())
    return tuple(_captured(columns, scalars, line) for line in table["lines"])


@cache
def _tables(op_type: str) -> dict[str, dict[str, Any]]:
    text = (op_folder(op_type) / "captured.json").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = json.loads(text)
    return tables


def _captured(
    columns: Sequence[str], scalar_names: Sequence[str], line: Sequence[Any]
) -> CapturedWorkload:
    axes = dict(zip(columns, line, strict=True))
    scalars = {name: axes.pop(name) for name in scalar_names}
    sm_scale = axes.pop("sm_scale", None)
    return CapturedWorkload(
        axes.pop("uuid"), sm_scale=sm_scale, scalars=scalars, axes=axes
    )
