"""Judge names and paths of repositories: those that come in, and those that go out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from generator.dataset.paths import FOLDERS, is_portable

TESTS = "tests/references"
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_REPO = re.compile(rf"{_PART}/{_PART}", re.ASCII)
_LONGEST = 1000
_LONGEST_PART = 200


def bad_repo(repo: str) -> str:
    """Return in one line why a text names no repository, nothing where it does."""
    if not _REPO.fullmatch(repo) or ".." in repo or "--" in repo:
        return "a dataset's repository is named OWNER/NAME."
    return ""


def is_of_dataset(path: str) -> bool:
    """Return whether a path lies in a folder of the dataset, by its first parts."""
    return path.split("/", 1)[0] in FOLDERS or path.startswith(f"{TESTS}/")


def bad_path(path: str) -> str:
    """Return why a path of a listing is written nowhere, nothing where it may be.

    A path may lead nowhere but below the dataset's folders, and to the same file on
    every system.
    """
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        return "is no path below the dataset"
    if len(path) > _LONGEST or any(len(p.encode()) > _LONGEST_PART for p in parts):
        return "is too long"
    if any(part.casefold().startswith(".git") for part in parts):
        return "is git's"
    if not path.isprintable() or not all(map(is_portable, parts)):
        return "has a name that not all systems can hold"
    return ""


def collisions(paths: Iterable[str]) -> dict[str, str]:
    """Return path → the other one that takes its place where case does not count.

    Also where one is a file and the other one has it for a folder.
    """
    found: dict[str, str] = {}
    first: dict[str, tuple[str, str]] = {}  # folded → as written, a path that has it
    files = {_folded(path): path for path in paths}
    for path in sorted(paths):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            part = "/".join(parts[:depth])
            written, other = first.setdefault(_folded(part), (part, path))
            if written != part:
                found[path] = other
                found.setdefault(other, path)
            if depth < len(parts) and _folded(part) in files:
                found[path] = files[_folded(part)]
    return found


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path.casefold())
