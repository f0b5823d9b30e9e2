"""Whether the dataset records that a definition agreed with a production kernel.

`verification/*.json` has runs; a run maps a definition's name to the hash of its file
and to a verdict for each source. Evidence for another text of the definition is none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from generator.jsonfile import read_json
from generator.summary import Summary

FOLDER = "verification"
_NOT_A_KERNEL = ("oracle", "pytorch", "metamorphic")


class Evidence:
    """Answer for one dataset; its records are read when the first question comes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(self, summary: Summary) -> bool:
        """Return whether a production kernel passed and none failed on this text."""
        verdicts = self._verdicts.get((summary.name, summary.sha256), set())
        return verdicts == {"PASSED"}

    @cached_property
    def _verdicts(self) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = {}
        for name, sha256, source, verdict in _records(self.root):
            told = source.replace(":", "/").split("/")[0]
            if told not in _NOT_A_KERNEL and verdict != "SKIPPED":
                found.setdefault((name, sha256), set()).add(verdict)
        return found


def _records(root: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield (definition, sha256, source, verdict); what is no record is passed over."""
    try:
        names = sorted(os.listdir(root / FOLDER))
    except OSError:
        return
    for name in names:
        if not name.endswith(".json"):
            continue
        for run in _list(_field(read_json(root, f"{FOLDER}/{name}").value, "runs")):
            for definition, entry in _fields(_field(run, "definitions")):
                sha256 = _field(entry, "sha256")
                for source, verdict in _fields(_field(entry, "sources")):
                    yield (
                        definition,
                        str(sha256),
                        source,
                        str(_field(verdict, "verdict")),
                    )


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, dict) else ()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
