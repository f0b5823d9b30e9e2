"""Every definition gets an answer, whatever becomes of the processes that look for it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from generator.discover import DatasetFile
from generator.inquiry.inquiry import Event
from generator.inquiry.pool import Options, ask


@dataclass(frozen=True)
class Told:
    name: str
    key: str
    task: Mapping[str, Any] | None = None
    seconds: float = 0.0
    error: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Told:
        return cls(**value)


@dataclass(frozen=True)
class Echo:
    kind = Told
    work = "tests.unit.inquiry.echoing"
    patience: float = 60.0

    def key(self, file: DatasetFile) -> str:
        return f"key of {file.name}"

    def task(self, file: DatasetFile) -> dict[str, Any]:
        return {"own": file.name}

    def read(self, file: DatasetFile, key: str, events: Iterator[Event]) -> Told:
        task = None
        for event in events:
            if event["event"] == "task":
                task = event["task"]
            elif event["event"] == "broken":
                return self.broken(file, key, event["why"])
        if task is None:
            raise ValueError("no task was told")
        return Told(file.name, key, task, event["seconds"])

    def broken(self, file: DatasetFile, key: str, why: str) -> Told:
        return Told(file.name, key, error=why)


def asked(
    names: Sequence[str], options: Options, patience: float = 60.0
) -> tuple[list[Told], list[tuple[str, bool]]]:
    """Ask about definitions of these names; return the answers and what was told."""
    files = [DatasetFile("op", name, f"definitions/op/{name}.json") for name in names]
    told: list[tuple[str, bool]] = []

    def tell(result: Told, was_kept: bool) -> None:
        told.append((result.name, was_kept))

    return ask(files, Echo(patience), options, tell), told


@pytest.mark.parametrize(
    ("jobs", "count", "lanes"), [(1, 1, 1), (5, 1, 5), (5, 2, 2), (2, 3, 1)]
)
def test_jobs_without_a_definition_go_to_those_that_there_are(
    tmp_path, jobs, count, lanes
):
    names = [f"d{number}" for number in range(count)]
    answers, told = asked(names, Options(tmp_path, None, jobs))
    assert [answer.name for answer in answers] == names
    assert sorted(told) == [(name, False) for name in names]
    for answer in answers:
        assert answer.task is not None
        assert answer.task["lanes"] == lanes
        assert answer.task["own"] == answer.task["file"]["name"] == answer.name
        assert answer.task["root"] == str(tmp_path)


def test_what_is_kept_is_not_asked_and_takes_no_lane(tmp_path):
    dataset, state = tmp_path / "dataset", tmp_path / "state"
    state.mkdir()
    asked(["a", "b"], Options(dataset, state, 2))
    answers, told = asked(["a", "b", "c"], Options(dataset, state, 2))
    assert told[:2] == [("a", True), ("b", True)]
    assert told[2:] == [("c", False)]
    assert answers[2].task is not None
    assert answers[2].task["lanes"] == 2
    assert all(
        not kept for _, kept in asked(["a"], Options(dataset, state, 1, True))[1]
    )


BROKEN = {
    "raises": "ValueError: on",
    "dies": "ended its process with status 5",
    "hangs": "did not answer any more",
    "kills the worker": "the worker ended by SIGKILL",
    "says no event": "wrote to the connection of the process that runs it",
    "is done at once": "no task was told",
}


def test_a_mishap_is_told_of_its_definition_and_of_no_other(tmp_path):
    names = [name for broken in BROKEN for name in (broken, f"behind {broken}")]
    state = tmp_path / "state"
    state.mkdir()
    answers, _ = asked(names, Options(tmp_path, state, 1), patience=3.0)
    for broken, behind in zip(answers[::2], answers[1::2], strict=True):
        assert (broken.name, broken.error) == (broken.name, BROKEN[broken.name])
        assert not behind.error
        assert behind.task is not None
    # what could not be found out is asked again
    _, told = asked(["dies", "behind dies"], Options(tmp_path, state, 1))
    assert sorted(told) == [("behind dies", True), ("dies", False)]


def test_interrupted_it_leaves_no_worker(tmp_path):
    def interrupt() -> None:
        time.sleep(2.0)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        asked(["hangs"], Options(tmp_path, None, 1))
    assert not children()


def children() -> list[int]:
    """Return the processes that this one started and that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] not in "ZX":
            found.append(int(path.parent.name))
    return found
