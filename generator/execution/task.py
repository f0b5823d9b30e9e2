"""A task: work on one definition in a worker's child process, and its result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

from generator.dataset.paths import DatasetFile
from generator.execution.task_cache import TaskResult

Event = dict[str, Any]
R_co = TypeVar("R_co", bound=TaskResult, covariant=True)


class CannotRun(Exception):
    """Say in one line why a task can't run on a definition."""


class Task(Protocol[R_co]):
    """Define the work on a definition, and read the events that it sends."""

    @property
    def kind(self) -> type[R_co]:
        """Return the class of the results, which the cache reads."""

    @property
    def work(self) -> str:
        """Return the module whose `answer(arguments, link)` a child process calls."""

    @property
    def timeout(self) -> float:
        """Return after how many seconds without an event a child is ended."""

    def key(self, file: DatasetFile) -> str:
        """Return the digest of all that the result depends on. Raises OSError."""

    def task(self, file: DatasetFile) -> dict[str, Any]:
        """Return arguments beside the file and the dataset's root, as JSON values."""

    def read(self, file: DatasetFile, key: str, events: Iterator[Event]) -> R_co:
        """Return the result of the events, of which the last is `done` or `broken`."""

    def broken(self, file: DatasetFile, key: str, why: str) -> R_co:
        """Return a result with an error: no other result could be computed."""
