"""Hostile and broken solutions and traces: cases of the corpus, as hostile.py has."""

from __future__ import annotations

import json
from typing import Any

from tests.functional.hostile import (
    DEEP,
    SOLUTION,
    SOLVED,
    TRACED,
    TRACES,
    Break,
    holding,
)


def _solved(**changes: Any) -> Break:
    return holding({**SOLVED, **changes}, SOLUTION)


def _traced(**evaluation: Any) -> Break:
    value = {**TRACED["evaluation"], **evaluation}
    return holding({**TRACED, "evaluation": value}, TRACES)


def _source(path: str, content: str = "") -> Break:
    return _solved(sources=[*SOLVED["sources"], {"path": path, "content": content}])


def _spec(**changes: Any) -> Break:
    return _solved(spec={**SOLVED["spec"], **changes})


CASES: dict[str, tuple[str, Break]] = {
    "source leads upwards": ("solution-source-path", _source("../../run.py")),
    "source is absolute": ("solution-source-path", _source("/tmp/run.py")),
    "source has a drive": ("solution-source-path", _source("C:run.py")),
    "source comes twice": ("solution-source-path", _source("main.py")),
    "solution is deep": ("solution-syntax", _source("x.py", f"x = {DEEP}")),
    "entry point is a pattern": ("schema-value", _spec(entry_point="main.py::(.*)+$")),
    "entry point is elsewhere": (
        "solution-entry-point",
        _spec(entry_point="/etc/passwd::run"),
    ),
    "solution has no name": ("schema-value", _solved(name="")),
    "solution is of another": ("solution-path", _solved(definition="other")),
    "trace is of the future": (
        "trace-numbers",
        _traced(performance={"latency_ms": -1}),
    ),
    "trace is too fast": (
        "trace-numbers",
        _traced(
            performance={
                "latency_ms": 1,
                "reference_latency_ms": 1,
                "speedup_factor": 1000,
            }
        ),
    ),
    "trace is NaN": (
        "json-nan",
        holding(json.dumps({**TRACED, "x": float("nan")}), TRACES),
    ),
    "trace is of nobody": (
        "trace-solution",
        holding({**TRACED, "solution": "x"}, TRACES),
    ),
}
