"""Results that are kept between audits, a file each, by all that they depend on.

An audit that was interrupted goes on where it was: what it had is here, whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from generator import __version__
from generator.audit.result import DefinitionResult
from generator.cache import default_path
from generator.files import write_atomically

# what decides the verdict on a mutant, beside the definition and its recording
_SOURCES = ("audit", "ops", "support", "constants.py", "plan.py", "models.py", "data")
_FORMAT = 1


def default_folder() -> Path:
    """Return where results are kept: below XDG_CACHE_HOME, else ~/.cache."""
    return default_path().with_name("audit")


def key_of(definition: Path, recording: Path, tolerance: float | None) -> str:
    """Return the digest of all that the audit of a definition depends on.

    Raises OSError where the definition can't be read.
    """
    digest = hashlib.sha256(_sources().encode())
    digest.update(repr(tolerance).encode())
    digest.update(hashlib.sha256(definition.read_bytes()).digest())
    if recording.exists():
        digest.update(hashlib.sha256(recording.read_bytes()).digest())
    return digest.hexdigest()[:32]


def find(folder: Path, key: str) -> DefinitionResult | None:
    """Return the result that was kept under a key; None where there is none."""
    try:
        value: Mapping[str, Any] = json.loads(
            (folder / f"{key}.json").read_text("utf-8")
        )
        found = DefinitionResult.from_dict(value)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.key == key else None


def keep(folder: Path, result: DefinitionResult) -> None:
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
