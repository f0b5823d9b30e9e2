"""Pick the files that a person asked for by op_type or name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from generator.discover import DatasetFile, Discovered
from generator.wording import did_you_mean, quote


class UnknownName(Exception):
    """Say that nothing has the op_type or the name that was asked for.

    `str()` is one line for the person who typed it, with the nearest known name.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(
            f"No {kind} is named {quote(name)}.{did_you_mean(name, known)}"
        )
        self.kind = kind
        self.name = name


def select(
    found: Discovered, op_types: Sequence[str], names: Sequence[str]
) -> tuple[DatasetFile, ...]:
    """Return the files with one of the op_types or one of the names, sorted.

    Both empty selects everything. Names are those of files. Raises UnknownName.
    """
    if not op_types and not names:
        return found.files
    _check_known("op_type", op_types, found.op_types)
    _check_known("definition", names, [file.name for file in found.files])
    return tuple(
        file for file in found.files if file.op_type in op_types or file.name in names
    )


def _check_known(kind: str, asked: Sequence[str], known: Collection[str]) -> None:
    for name in asked:
        if name not in known:
            raise UnknownName(kind, name, known)
