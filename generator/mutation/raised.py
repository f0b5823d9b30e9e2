"""Tell what `run()` raises from what a test does, each in a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from generator.execution.process_limits import TimeIsUp
from generator.problems.messages import one_line
from generator.running.described import first_finding

Run = Callable[..., Any]
_SHORT = 160


class Raised(Exception):
    """An exception of `run()` on its way through the tests, SystemExit included."""

    def __init__(self, cause: BaseException) -> None:
        kind, text = type(cause).__name__, first_line(cause)
        super().__init__(f"raised {kind}: {text}" if text else f"raised {kind}")


def guarded(run: Run) -> Run:
    """Return a run() whose exceptions are wrapped in Raised, unlike those of a test."""

    def call(*arguments: Any) -> Any:
        try:
            return run(*arguments)
        except TimeIsUp:
            raise
        except BaseException as error:  # noqa: BLE001
            raise Raised(error) from None

    return call


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, empty where it says nothing."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # noqa: BLE001
        return ""
    return one_line(lines[0].strip(), _SHORT) if lines else ""


def reason(message: str) -> str:
    """Return the first finding of a failed comparison, in a short line."""
    return one_line(first_finding(message), _SHORT)
