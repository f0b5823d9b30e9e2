"""A task as a plain value, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DONE, RAISED, CRASHED, TIMED_OUT = "done", "raised", "crashed", "timed out"
OUT_OF_MEMORY, CONTEXT_LOST = "out of memory", "CUDA context lost"
FORGED = "forged"


class CannotRun(Exception):
    """Raised with one line where a task can't run."""


@dataclass(frozen=True)
class Task:
    """A function, `module:function`, and its arguments, JSON values.

    A worker calls `function(arguments, link)`; what it returns, a JSON value, is the
    task's value. It gets more arguments: by name, the path of each folder that the tasks
    read, or of its copy; `lanes`, the processes that a task may use; and `sharing`, how
    many processes share the memory of the machine.
    """

    work: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The end of a task: its value, or the reason why it has none.

    `said` are the values that it sent while it was under way.
    """

    status: str
    value: Any = None
    why: str = ""
    said: Sequence[Any] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Folder:
    """A folder that tasks read; `parts` are the paths they read in it, none for all."""

    path: Path
    parts: Sequence[str] = ()
