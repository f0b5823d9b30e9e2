"""Recorded audits to write into small datasets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from generator.rules.basis import basis_in

AUDIT = "verification/audit.json"


def entry(sha256: str = "0" * 64, *survivors: str, **changes: Any) -> dict[str, Any]:
    """Return what is kept of a definition: 40 caught, 3 equivalent, these survivors."""
    counts = {
        "caught": 40,
        "equivalent": 3,
        "survived": len(survivors),
        "timed out": 1,
    }
    listed = [{"name": n, "before": f"x = {n}", "after": "x = 1"} for n in survivors]
    return {
        "sha256": sha256,
        "counts": counts,
        "survivors": listed,
        "reduced": {},
        "gen_tests": "0.1.0",
        "torch": "2.13.0",
        "date": "2026-11-20",
        **changes,
    }


def digest(root: Path, path: str) -> str:
    """Return the hash of what a run of a definition depends on."""
    return basis_in(root, path)


def audited(root: Path, path: str, *survivors: str, **changes: Any) -> None:
    """Write that the definition at `path` was audited as it is."""
    found = entry(digest(root, path), *survivors, **changes)
    write_audit(root, {Path(path).stem: found})


def write_audit(root: Path, definitions: Any, **changes: Any) -> None:
    """Write an audit.json with these definitions."""
    value = {"format": 1, "definitions": definitions, **changes}
    (root / AUDIT).parent.mkdir(parents=True, exist_ok=True)
    (root / AUDIT).write_text(json.dumps(value))
