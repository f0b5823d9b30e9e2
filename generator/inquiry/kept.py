"""Results that are kept between audits, a file each, by all that they depend on.

An audit that was interrupted goes on where it was: what it had is here, whole.
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
from generator.cache import default_path
from generator.files import write_atomically

if TYPE_CHECKING:
    from typing_extensions import Self

# what decides the verdict on a mutant, beside the definition and its recording
_SOURCES = (
    "audit",
    "inquiry",
    "ops",
    "support",
    "constants.py",
    "plan.py",
    "models.py",
    "data",
)
_FORMAT = 1


class Result(Protocol):
    """Be what was found out about a definition; `error` says why nothing was."""

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


R = TypeVar("R", bound=Result)


def default_folder() -> Path:
    """Return where results are kept: below XDG_CACHE_HOME, else ~/.cache."""
    return default_path().with_name("audit")


def make_folder(folder: Path) -> None:
    """Make the folder of results. Raises OSError where none can be written there."""
    if folder.exists() and not folder.is_dir():
        what = "results are kept in a folder, and this is none"
        raise NotADirectoryError(errno.ENOTDIR, what, str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def key_of(definition: Path, recording: Path, tolerance: float | None) -> str:
    """Return the digest of all that the audit of a definition depends on.

    Raises OSError where the definition can't be read.
    """
    recorded = [recording] if recording.exists() else []
    return key_of_files([definition, *recorded], repr(tolerance))


def key_of_files(files: Sequence[Path], what: str) -> str:
    """Return the digest of files, of what is asked of them, and of the code that asks.

    Raises OSError where a file can't be read.
    """
    digest = hashlib.sha256(_sources().encode())
    digest.update(what.encode())
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:32]


def find(folder: Path, key: str, kind: type[R]) -> R | None:
    """Return the result that was kept under a key; None where there is none."""
    try:
        value = json.loads((folder / f"{key}.json").read_text("utf-8"))
        found = kind.from_dict(value)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.key == key else None


def keep(folder: Path, result: Result) -> None:
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
