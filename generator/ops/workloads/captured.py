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

from generator.ops.registry import op_folder, op_specs
from generator.problems import Failure
from generator.problems.messages import did_you_mean, quote


@dataclass(frozen=True)
class CapturedWorkload:
    """One captured workload; `scalars` are inputs by name."""

    uuid: str
    axes: Mapping[str, int]
    sm_scale: float | None = None
    scalars: Mapping[str, float] = field(default_factory=dict)


def captured_lines(op_type: str, definition: str) -> tuple[CapturedWorkload, ...]:
    """Return a definition's captured workloads, in the order they were captured.

    Raises Failure where the op_type has none of a definition of that name.
    """
    tables = _tables(op_type)
    if definition not in tables:
        raise Failure(_lacking(op_type, definition, tables))
    table = tables[definition]
    columns, scalars = table["columns"], table.get("scalars", ())
    return tuple(_captured(columns, scalars, line) for line in table["lines"])


@cache
def _tables(op_type: str) -> dict[str, dict[str, Any]]:
    file = op_folder(op_type) / "captured.json"
    if not file.is_file():
        return {}
    tables: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return tables


def _lacking(op_type: str, definition: str, tables: Mapping[str, Any]) -> str:
    """Return why there are no captured workloads, and what a family has to write."""
    if tables:
        lacks = f"captured.json of {op_type} has no definition {quote(definition)}."
        return f"{lacks}{did_you_mean(definition, tables)}"
    others = [o for o in op_specs() if (op_folder(o) / "captured.json").is_file()]
    return (
        f"The op_type {op_type} has no captured.json: let `captured_from` name a"
        " definition with captured workloads and `captured_op_type` its op_type, one of"
        f" {', '.join(others)}."
    )


def _captured(
    columns: Sequence[str], scalar_names: Sequence[str], line: Sequence[Any]
) -> CapturedWorkload:
    axes = dict(zip(columns, line, strict=True))
    scalars = {name: axes.pop(name) for name in scalar_names}
    sm_scale = axes.pop("sm_scale", None)
    return CapturedWorkload(
        axes.pop("uuid"), sm_scale=sm_scale, scalars=scalars, axes=axes
    )
