"""A cache of outcomes: one file a task, named after all that its value depends on.

A command that was interrupted finds the outcomes that it had, whole.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from generator import __version__
from generator.dataset.atomic_write import write_atomically
from generator.execution.outcome import DONE, Outcome

# what decides the verdict on a mutant, beside the definition and its recording
_SOURCES = (
    "dataset",
    "execution",
    "mutation",
    "ops",
    "rendering/plan.py",
    "rules/constants.py",
    "testing",
)
_FORMAT = 2


def default_folder() -> Path:
    """Return where outcomes are kept unless a caller says otherwise."""
    base = os.environ.get("XDG_CACHE_HOME")
    home = Path(base) if base and os.path.isabs(base) else Path.home() / ".cache"
    return home / "gen-tests" / "audit"


def make_folder(folder: Path) -> None:
    """Make the folder of the cache. Raises OSError where it can't be written to."""
    if folder.exists() and not folder.is_dir():
        what = "the cache is a folder, and this is none"
        raise NotADirectoryError(errno.ENOTDIR, what, str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def key_of_files(files: Sequence[Path], what: str) -> str:
    """Return the digest of files, of what is done with them, and of the code that does it.

    Raises OSError where a file can't be read.
    """
    digest = hashlib.sha256(f"{sources()}{what}".encode())
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:32]


def load(folder: Path, key: str) -> Outcome | None:
    """Return the cached outcome of a key; None where there is none."""
    try:
        kept = json.loads((folder / f"{key}.json").read_text("utf-8"))
        is_its = kept["key"] == key
        outcome = Outcome(DONE, kept["value"], seconds=float(kept["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return outcome if is_its else None


def store(folder: Path, key: str, outcome: Outcome) -> None:
    """Write an outcome, whole or not at all. Raises OSError, with the file's name."""
    kept = {"key": key, "value": outcome.value, "seconds": outcome.seconds}
    write_atomically(folder / f"{key}.json", json.dumps(kept).encode())


@cache
def sources() -> str:
    """Return the digest of the code that audits, and of the torch that computes."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256(f"{_FORMAT} {__version__}".encode())
    # none where torch is not installed
    digest.update(
        "".join(d.version for d in metadata.distributions(name="torch")).encode()
    )
    for name in _SOURCES:
        start = package / name
        found = sorted(start.rglob("*")) if start.is_dir() else [start]
        for path in (p for p in found if p.suffix in (".py", ".json")):
            digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.hexdigest()
