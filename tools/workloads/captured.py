"""Axes of workloads captured from real inference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

SCALARS = ("local_expert_offset", "routed_scaling_factor")
CAPTURED = Path(__file__).resolve().parents[1] / "captured"


@dataclass(frozen=True)
class Captured:
    """Hold what was kept of one captured workload; `scalars` are inputs by name."""

    uuid: str
    axes: Mapping[str, int]
    sm_scale: float | None = None
    scalars: Mapping[str, float] = field(default_factory=dict)


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
    scalars = {name: axes.pop(name) for name in SCALARS if name in axes}
    sm_scale = axes.pop("sm_scale", None)
    return Captured(axes.pop("uuid"), sm_scale=sm_scale, scalars=scalars, axes=axes)
