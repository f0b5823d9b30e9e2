"""JUnit files of reference tests, as pytest would write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

CPU = {"device": "cpu", "torch": "2.13.0", "python": "3.11.7"}
H200 = {**CPU, "device": "cuda", "gpu": "NVIDIA H200", "sm": "90"}


def comparison(
    source: str = "oracle", case: str = "a", **figures: Any
) -> dict[str, Any]:
    """Return what a test records of one output."""
    base = {"definition": "gemm_n8_k4", "source": source, "case": case, "output": "C"}
    return {**base, "verdict": "PASSED", "nmse": 1e-9, "max_abs": 1e-4, **figures}


def result(
    source: str | None = "oracle",
    *records: Mapping[str, Any],
    definition: str = "gemm_n8_k4",
    sha256: str = "",
    function: str = "",
    ending: str = "",
    seconds: str = "1.5",
) -> str:
    """Return the element of one test; `ending` is what its outcome adds."""
    pairs = [("definition", definition), ("sha256", sha256)]
    if source is not None:
        pairs.append(("source", source))
    pairs += [("comparison", json.dumps(record)) for record in records]
    name = function or f"test_matches_{(source or 'x').partition('/')[0]}"
    return (
        f'<testcase classname="rendered.TestD" name="{name}[a]" time="{seconds}">'
        f"{properties(pairs)}{ending}</testcase>"
    )


def properties(pairs: Iterable[tuple[str, str]]) -> str:
    """Return an element of properties."""
    items = (f"<property name={quoteattr(n)} value={quoteattr(v)}/>" for n, v in pairs)
    return f"<properties>{''.join(items)}</properties>"


def junit(
    *tests: str, machine: Mapping[str, str] = CPU, date: str = "2026-11-21"
) -> str:
    """Return the text of a JUnit file."""
    return (
        '<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" '
        f'timestamp="{date}T10:00:00+00:00">{properties(machine.items())}'
        f"{''.join(tests)}</testsuite></testsuites>"
    )


def write_junit(path: Path, *tests: str, **options: Any) -> Path:
    """Write a JUnit file and return its path."""
    path.write_text(junit(*tests, **options), "utf-8")
    return path
