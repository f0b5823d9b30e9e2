"""What workers are asked about definitions: mutants are one inquiry, seeds another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

from generator.audit.kept import Result
from generator.discover import DatasetFile

Event = dict[str, Any]
R_co = TypeVar("R_co", bound=Result, covariant=True)


class Inquiry(Protocol[R_co]):
    """Say what a worker is asked about a definition, and read what it answers."""

    @property
    def kind(self) -> type[R_co]:
        """Return the class of the results."""

    def key(self, file: DatasetFile) -> str:
        """Return the digest of all that the answer depends on. Raises OSError."""

    def task(self, file: DatasetFile) -> dict[str, Any]:
        """Return what the worker is told, beside the file and the dataset's root."""

    def read(self, file: DatasetFile, key: str, events: Iterator[Event]) -> R_co:
        """Return what a worker's events say; the last one is `done` or `broken`."""

    def broken(self, file: DatasetFile, key: str, why: str) -> R_co:
        """Return that nothing could be found out."""
