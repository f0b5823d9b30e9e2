"""The files of verification/: the evidence of runs, and what the audit found."""

from __future__ import annotations

from pathlib import Path

FOLDER = "verification"
AUDIT = f"{FOLDER}/audit.json"


def is_kept(path: str) -> bool:
    """Return whether a dataset's path is one of these files."""
    return path.startswith(f"{FOLDER}/") and path.endswith(".json")


def evidence_files(root: Path) -> list[str]:
    """Return the paths of the evidence of runs, relative to `root`; the audit is none."""
    names = sorted(path.name for path in (root / FOLDER).glob("*.json"))
    return [path for name in names if (path := f"{FOLDER}/{name}") != AUDIT]
