"""Entry points of other distributions; looking for them costs nothing where none exist."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType

from generator.problems import Failure

OP_TYPES, RULES, DIALECTS, PROVIDERS = (
    "gen_tests.op_types",
    "gen_tests.rules",
    "gen_tests.dialects",
    "gen_tests.providers",
)
"""The groups of entry points."""

_GROUPS = b"[gen_tests."


class BadPlugin(Failure):
    """Raised in one line for a distribution's module that can't be used."""


@cache
def _has_any(path: tuple[str, ...]) -> bool:
    """Return whether a distribution on the path has an entry point of ours.

    Most installations have none, and to import importlib.metadata takes 50 ms.
    """
    return any(_GROUPS in text for folder in path for text in _entry_points(folder))


def _entry_points(folder: str) -> Iterator[bytes]:
    """Yield the texts of entry points in a folder of installed distributions."""
    with suppress(OSError), os.scandir(folder or ".") as scanned:
        for entry in scanned:
            if entry.name.endswith("-info"):
                with suppress(OSError):
                    yield Path(entry.path, "entry_points.txt").read_bytes()


def plugins(group: str) -> Mapping[str, str]:
    """Return name → module of a group's entry points; nothing of them is imported.

    Raises BadPlugin where two distributions claim a name.
    """
    return _plugins(group, tuple(sys.path))


@cache
def _plugins(group: str, path: tuple[str, ...]) -> Mapping[str, str]:
    # by the path: it may have grown since the first question
    if not _has_any(path):
        return MappingProxyType({})
    from importlib.metadata import entry_points

    modules: dict[str, str] = {}
    for entry in entry_points(group=group):
        if modules.setdefault(entry.name, entry.value) != entry.value:
            raise BadPlugin(
                f"{entry.name!r} is claimed by {modules[entry.name]} and by "
                f"{entry.value}, entry points of {group}."
            )
    return MappingProxyType(dict(sorted(modules.items())))


def plugin(group: str, name: str) -> ModuleType:
    """Return the module of an entry point. Raises BadPlugin where it can't be imported."""
    module = plugins(group)[name]
    try:
        return importlib.import_module(module)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise BadPlugin(
            f"{module}, the entry point {name!r} of {group}: {what}"
        ) from error
