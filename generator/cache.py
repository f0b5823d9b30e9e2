"""Remember outcomes by the content of the files that they are about.

An entry is used only where every byte that went into it is the same: the files of the
unit, each blob, the rules' own sources and Python's version. A cache that is lost,
broken or can't be written costs time and nothing else.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from generator.blobs import state_of
from generator.jsonfile import MAX_BYTES
from generator.outcome import Outcome, Summary, Unit
from generator.problems import Problem, Severity
from generator.reading import opened, read_at_most

MAX_ENTRIES = 500_000
"""Entries that are kept; the oldest go first. One takes some hundred bytes."""

_LONGEST = 256 * 1024
"""Characters of the longest entry; a file with thousands of problems is read again."""


def default_path() -> Path:
    """Return where the cache lies: below XDG_CACHE_HOME, else ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    home = Path(base) if base and os.path.isabs(base) else Path.home() / ".cache"
    return home / "gen-tests" / "validate.sqlite"


class Cache:
    """Keep outcomes in one SQLite file; every failure of it is a cache miss."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fresh: list[tuple[bytes, str]] = []
        self._folders: dict[str, bool] = {}
        self._database: sqlite3.Connection | None = None
        self._opened = False

    def key(
        self, root: Path, unit: Unit, config: Mapping[str, Any] | None
    ) -> str | None:
        """Return the key of a unit's present content; None where it can't be read."""
        digest = blake2b(_fingerprint(), digest_size=20)
        digest.update(json.dumps(config, sort_keys=True).encode())
        workloads = () if unit.workloads is None else (unit.workloads,)
        paths = (unit.file.path, *workloads, *unit.solutions, *unit.traces)
        try:
            for path in paths:
                with opened(f"{root}/{path}") as file:
                    status = os.fstat(file)
                    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
                        return None
                    content = read_at_most(file, MAX_BYTES + 1)
                name = path.encode("utf-8", "surrogateescape")
                digest.update(b"%d %d " % (len(name), len(content)) + name + content)
            folder = f"{root}/blob/workloads/{unit.file.op_type}/{unit.file.name}"
            # a blob that nobody uses is in no line, so its name has to count
            names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
            digest.update(repr(names).encode("utf-8", "backslashreplace"))
        except (OSError, ValueError):
            return None
        return digest.hexdigest()

    def get(self, root: Path, key: str) -> Outcome | None:
        """Return the outcome of a key if the blobs are still what they were."""
        database = self._connection()
        if database is None:
            return None
        try:
            row = database.execute(
                "SELECT value FROM outcomes WHERE key = ?", (bytes.fromhex(key),)
            ).fetchone()
            value = json.loads(row[0]) if row is not None else None
            if value is None or not self._same_blobs(root, value["blobs"]):
                return None
            return _outcome(value)
        except (sqlite3.Error, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome; `save` writes it."""
        text = _text(outcome)
        if len(text) <= _LONGEST:
            self._fresh.append((bytes.fromhex(key), text))
        if len(self._fresh) >= 512:
            self.save()

    def save(self) -> None:
        """Write what is new, and forget what is too old."""
        database = self._connection(create=True) if self._fresh else None
        if database is not None:
            with suppress(sqlite3.Error), database:
                database.executemany(
                    "INSERT OR REPLACE INTO outcomes VALUES (?, ?)", self._fresh
                )
                database.execute(
                    "DELETE FROM outcomes WHERE rowid <= "
                    "(SELECT MAX(rowid) FROM outcomes) - ?",
                    (MAX_ENTRIES,),
                )
        self._fresh.clear()

    def _same_blobs(self, root: Path, blobs: Mapping[str, str]) -> bool:
        return all(
            state_of(root, path, self._folders) == state
            for path, state in blobs.items()
        )

    def _connection(self, create: bool = False) -> sqlite3.Connection | None:
        if self._database is not None or (self._opened and not create):
            return self._database
        self._opened = True
        try:
            if create:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            elif not self.path.is_file():
                return None
            self._database = _open(self.path)
        except sqlite3.DatabaseError:
            # not a database: begin anew
            with suppress(OSError, sqlite3.Error):
                self.path.unlink()
                self._database = _open(self.path) if create else None
        except OSError:
            pass
        return self._database


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=5, isolation_level="DEFERRED")
    database.execute("PRAGMA synchronous = OFF")
    database.execute(
        "CREATE TABLE IF NOT EXISTS outcomes (key BLOB PRIMARY KEY, value TEXT)"
    )
    return database


@lru_cache(maxsize=1)
def _fingerprint() -> bytes:
    """Return what stands for the rules themselves: sources, by size and time, Python."""
    package = Path(__file__).parent
    parts = [sys.version]
    for folder in (package, package / "rules", package / "ops", package / "schemas"):
        for entry in sorted(os.scandir(folder), key=lambda e: e.name):
            if entry.is_file():
                status = entry.stat()
                parts.append(f"{entry.name} {status.st_size} {status.st_mtime_ns}")
    status = (package / "data" / "models.json").stat()
    parts.append(f"{status.st_size} {status.st_mtime_ns}")
    return blake2b("\n".join(parts).encode(), digest_size=20).digest()


def _text(outcome: Outcome) -> str:
    value = {
        "name": outcome.name,
        "problems": [problem.as_dict() for problem in outcome.problems],
        "workloads": outcome.workloads,
        "summary": vars(outcome.summary) if outcome.summary is not None else None,
        "blobs": outcome.blobs,
        "elsewhere": outcome.elsewhere,
        "unused": outcome.unused,
    }
    return json.dumps(value)


def _outcome(value: Any) -> Outcome:
    problems = tuple(
        Problem(**{**p, "severity": Severity(p["severity"])}) for p in value["problems"]
    )
    return Outcome(
        name=value["name"],
        problems=problems,
        workloads=value["workloads"],
        summary=_summary(value["summary"]),
        blobs=value["blobs"],
        elsewhere=tuple(value["elsewhere"]),
        unused=tuple(value["unused"]),
    )


def _summary(value: Any) -> Summary | None:
    if value is None:
        return None
    pairs = ("constants", "facts", "fi_apis")
    listed = {name: tuple(map(tuple, value[name])) for name in pairs}
    return Summary(**{**value, **listed})
