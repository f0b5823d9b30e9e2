"""Axes of workloads captured from real inference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

CAPTURED = Path(__file__).resolve().parents[1] / "captured"


@dataclass(frozen=True)
class Captured:
    """Hold what was kept of one captured workload."""

    uuid: str
    axes: Mapping[str, int]
    sm_scale: float | None = None


def captured_lines(op_type: str, definition: str) -> tuple[Captured, ...]:
    """Return a definition's captured workloads, in the order they were captured."""
    table = _tables(op_type)[definition]
    return tuple(_captured(table["columns"], line) for line in table["lines"])


@cache
def _tables(op_type: str) -> dict[str, dict[str, Any]]:
    text = (CAPTURED / f"{op_type}.json").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = json.loads(text)
    return tables


def _captured(columns: list[str], line: list[Any]) -> Captured:
    axes = dict(zip(columns, line, strict=True))
    return Captured(axes.pop("uuid"), sm_scale=axes.pop("sm_scale", None), axes=axes)
