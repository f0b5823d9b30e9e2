"""Whatever becomes of a worker, each definition has a result, and one clear reason."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.audit.result import DefinitionResult
from generator.discover import DatasetFile
from generator.inquiry.inquiry import Event
from generator.inquiry.pool import Options, ask

# pipes of workers that are gone are closed with the command that asked
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
FILES = [DatasetFile("a", n, f"definitions/a/{n}.json") for n in ("one", "two")]


class Asking:
    """Ask for a moment's work; what reads the answer to the first may raise."""

    kind = DefinitionResult
    work = "tests.unit.inquiry.works"
    patience = 30.0

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


def errors(asking: Asking, state: Path | None = None) -> list[str]:
    """Return what is said of each; the questions end within a minute."""
    found: list[DefinitionResult] = []
    options = Options(Path(), state)

    def work() -> None:
        found.extend(ask(FILES, asking, options, lambda result, was_kept: None))

    asks = threading.Thread(target=work, daemon=True)
    asks.start()
    asks.join(60.0)
    return [result.error for result in found]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (KeyError("place"), "the worker's answer is none: KeyError: 'place'"),
        (RecursionError("deep"), "the worker's answer is none: RecursionError: deep"),
        (ValueError("said by another"), "said by another"),
    ],
)
def test_an_answer_that_is_none_is_told_and_the_next_one_asked(error, why):
    assert errors(Asking(error)) == [why, ""]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_worker_that_is_killed_is_told_by_the_signal():
    assert errors(Asking(kills=True)) == ["the worker ended by SIGKILL", ""]


class Changing(Asking):
    """Ask about two definitions; the text of the first changes meanwhile."""

    asked = 0

    def key(self, file: DatasetFile) -> str:
        self.asked += file.name == "one"
        return file.name if file.name == "two" else f"one {self.asked}"

    def read(
        self, file: DatasetFile, key: str, events: Iterator[Event]
    ) -> DefinitionResult:
        list(events)
        return DefinitionResult(file.name, file.op_type, key)


def test_what_may_be_of_another_text_is_not_kept(tmp_path):
    assert errors(Changing(), tmp_path) == ["", ""]
    assert [path.name for path in tmp_path.iterdir()] == ["two.json"]
