"""What workers are asked about definitions: an inquiry is a question and its answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

from generator.discover import DatasetFile
from generator.inquiry.kept import Result

Event = dict[str, Any]
R_co = TypeVar("R_co", bound=Result, covariant=True)


class CannotAsk(Exception):
    """Say in one line why nothing can be found out about a definition."""


class Inquiry(Protocol[R_co]):
    """Say what a worker is asked about a definition, and read what it answers."""

    @property
    def kind(self) -> type[R_co]:
        """Return the class of the results."""

    @property
    def work(self) -> str:
        """Return the module whose `answer(task, link)` a child process calls."""

    @property
    def patience(self) -> float:
        """Return for how many seconds a child may say nothing, at most."""

    def key(self, file: DatasetFile) -> str:
        """Return the digest of all that the answer depends on. Raises OSError."""

    def task(self, file: DatasetFile) -> dict[str, Any]:
        """Return what the work is told, beside the file and the dataset's root."""

    def read(self, file: DatasetFile, key: str, events: Iterator[Event]) -> R_co:
        """Return what the events say; the last one is `done` or `broken`."""

    def broken(self, file: DatasetFile, key: str, why: str) -> R_co:
        """Return that nothing could be found out."""
