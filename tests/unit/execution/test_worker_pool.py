"""Whatever becomes of a worker, each definition has a result, and one clear reason."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.dataset.paths import DatasetFile
from generator.execution.task import Event
from generator.execution.worker_pool import PoolOptions, run_task
from generator.results.audit_result import DefinitionResult

# pipes of workers that are gone are closed with the command that started them
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
FILES = [DatasetFile("a", n, f"definitions/a/{n}.json") for n in ("one", "two")]


class Sleep:
    """Sleep for a moment; reading the events of the first definition may raise."""

    kind = DefinitionResult
    work = "tests.unit.execution.sleeping"
    timeout = 30.0

    def __init__(self, error: Exception | None = None, kills: bool = False) -> None:
        self._error = error
        self._kills = kills

    def key(self, file: DatasetFile) -> str:
        return file.name

    def task(self, file: DatasetFile) -> dict[str, Any]:
        seconds = 60.0 if self._kills and file.name == "one" else 0.0
        return {"seconds": seconds, "is_quiet": False}

    def read(
        self, file: DatasetFile, key: str, events: Iterator[Event]
    ) -> DefinitionResult:
        for event in events:
            if event["event"] == "broken":
                return self.broken(file, key, event["why"])
            if file.name == "one" and self._error is not None:
                raise self._error
            if file.name == "one" and self._kills:
                os.kill(parent_of(event["pid"]), signal.SIGKILL)
        return DefinitionResult(file.name, file.op_type, key)

    def broken(self, file: DatasetFile, key: str, why: str) -> DefinitionResult:
        return DefinitionResult(file.name, file.op_type, key, error=why)


def parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rsplit(")", 1)[1].split()[1])


def errors(task: Sleep, state: Path | None = None) -> list[str]:
    """Return the error of each; the task ends within a minute."""
    found: list[DefinitionResult] = []
    options = PoolOptions(Path(), state)

    def work() -> None:
        found.extend(run_task(FILES, task, options, lambda result, was_cached: None))

    runs = threading.Thread(target=work, daemon=True)
    runs.start()
    runs.join(60.0)
    return [result.error for result in found]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (KeyError("place"), "the worker's answer is none: KeyError: 'place'"),
        (RecursionError("deep"), "the worker's answer is none: RecursionError: deep"),
        (ValueError("said by another"), "said by another"),
    ],
)
def test_a_broken_answer_is_an_error_and_the_next_definition_is_run(error, why):
    assert errors(Sleep(error)) == [why, ""]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_the_error_of_a_killed_worker_names_the_signal():
    assert errors(Sleep(kills=True)) == ["the worker ended by SIGKILL", ""]


class Changing(Sleep):
    """Work on two definitions; the text of the first changes meanwhile."""

    reads = 0

    def key(self, file: DatasetFile) -> str:
        self.reads += file.name == "one"
        return file.name if file.name == "two" else f"one {self.reads}"

    def read(
        self, file: DatasetFile, key: str, events: Iterator[Event]
    ) -> DefinitionResult:
        list(events)
        return DefinitionResult(file.name, file.op_type, key)


def test_what_may_be_of_another_text_is_not_cached(tmp_path):
    assert errors(Changing(), tmp_path) == ["", ""]
    assert [path.name for path in tmp_path.iterdir()] == ["two.json"]
