"""Results of reference tests, as `pytest --results` would write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
    *records: Any,
    definition: str = "gemm_n8_k4",
    sha256: str = "",
    function: str = "",
    ending: tuple[str, str] = ("passed", ""),
    skip_kind: str = "",
    **changes: Any,
) -> dict[str, Any]:
    """Return the line of one test; `ending` is its status and why."""
    name = function or f"test_matches_{str(source or 'x').partition('/')[0]}"
    return {
        "test": f"TestD::{name}[a]",
        "definition": definition,
        "op_type": "gemm",
        "sha256": sha256,
        "source": source,
        "status": ending[0],
        "message": ending[1],
        "seconds": 1.5,
        "skip_kind": skip_kind,
        "comparisons": list(records),
        **changes,
    }


def lines(
    *tests: Any, machine: Mapping[str, str] = CPU, date: str = "2026-11-21"
) -> str:
    """Return the text of a results file."""
    head = {"format": 1, "date": date, "machine": machine}
    return "".join(f"{json.dumps(line)}\n" for line in (head, *tests))


def write_results(path: Path, *tests: Any, **options: Any) -> Path:
    """Write a results file and return its path."""
    path.write_text(lines(*tests, **options), "utf-8")
    return path


def write_evidence(
    root: Path, name: str, *sources: tuple[str, Mapping[str, Any]]
) -> None:
    """Write a dataset's evidence of one run: what each source said of a definition."""
    entries = {"gemm_n8_k4": {"sha256": "0" * 64, "sources": dict(sources)}}
    run = {"date": "2026-11-21", "machine": {}, "definitions": entries}
    path = root / "verification" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"format": 1, "runs": [run]}), "utf-8")
