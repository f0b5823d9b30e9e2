"""A cache of task results: one file a result, named after all that it depends on.

A command that was interrupted finds the results that it had, whole.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from generator import __version__
from generator.dataset.atomic_write import write_atomically

if TYPE_CHECKING:
    from typing_extensions import Self

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
_FORMAT = 1


class TaskResult(Protocol):
    """Hold the result of a task on a definition; `error` says why there is none."""

    @property
    def key(self) -> str:
        """Return the digest of all that it depends on."""

    @property
    def error(self) -> str:
        """Return an empty string where there is no error."""

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Read what `as_dict` gave. Raises KeyError, TypeError where it is not that."""


R = TypeVar("R", bound=TaskResult)


def default_folder() -> Path:
    """Return where results are kept unless a caller says otherwise."""
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
    digest = hashlib.sha256(_sources().encode())
    digest.update(what.encode())
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:32]


def load(folder: Path, key: str, kind: type[R]) -> R | None:
    """Return the cached result of a key; None where there is none."""
    try:
        value = json.loads((folder / f"{key}.json").read_text("utf-8"))
        found = kind.from_dict(value)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.key == key else None


def store(folder: Path, result: TaskResult) -> None:
    """Write a result, whole or not at all. Raises OSError, with the file's name."""
    text = json.dumps(result.as_dict(), ensure_ascii=False)
    write_atomically(folder / f"{result.key}.json", text.encode())


@cache
def _sources() -> str:
    """Return the digest of the code that audits, and of the torch that computes."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256(f"{_FORMAT} {__version__} {_torch()}".encode())
    for name in _SOURCES:
        start = package / name
        found = sorted(start.rglob("*")) if start.is_dir() else [start]
        for path in (p for p in found if p.suffix in (".py", ".json")):
            digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _torch() -> str:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "none"
