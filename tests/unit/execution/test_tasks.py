"""Every definition has a result, however its worker and child processes end."""

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

from generator.dataset.paths import DatasetFile
from generator.execution.task import Event
from generator.execution.worker_pool import PoolOptions, run_task


@dataclass(frozen=True)
class Echoed:
    name: str
    key: str
    task: Mapping[str, Any] | None = None
    seconds: float = 0.0
    error: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Echoed:
        return cls(**value)


@dataclass(frozen=True)
class Echo:
    kind = Echoed
    work = "tests.unit.execution.echoing"
    timeout: float = 60.0

    def key(self, file: DatasetFile) -> str:
        return f"key of {file.name}"

    def task(self, file: DatasetFile) -> dict[str, Any]:
        return {"own": file.name}

    def read(self, file: DatasetFile, key: str, events: Iterator[Event]) -> Echoed:
        task = None
        for event in events:
            if event["event"] == "task":
                task = event["task"]
            elif event["event"] == "broken":
                return self.broken(file, key, event["why"])
        if task is None:
            raise ValueError("no task was sent")
        return Echoed(file.name, key, task, event["seconds"])

    def broken(self, file: DatasetFile, key: str, why: str) -> Echoed:
        return Echoed(file.name, key, error=why)


def run_echo(
    names: Sequence[str], options: PoolOptions, timeout: float = 60.0
) -> tuple[list[Echoed], list[tuple[str, bool]]]:
    """Run Echo on definitions of these names; return the results and the progress."""
    files = [DatasetFile("op", name, f"definitions/op/{name}.json") for name in names]
    seen: list[tuple[str, bool]] = []

    def progress(result: Echoed, was_cached: bool) -> None:
        seen.append((result.name, was_cached))

    return run_task(files, Echo(timeout), options, progress), seen


@pytest.mark.parametrize(
    ("jobs", "count", "lanes"), [(1, 1, 1), (5, 1, 5), (5, 2, 2), (2, 3, 1)]
)
def test_jobs_without_a_definition_go_to_those_that_there_are(
    tmp_path, jobs, count, lanes
):
    names = [f"d{number}" for number in range(count)]
    results, seen = run_echo(names, PoolOptions(tmp_path, None, jobs))
    assert [result.name for result in results] == names
    assert sorted(seen) == [(name, False) for name in names]
    for result in results:
        assert result.task is not None
        assert result.task["lanes"] == lanes
        assert result.task["own"] == result.task["file"]["name"] == result.name
        assert result.task["root"] == str(tmp_path)


def test_what_is_cached_is_not_run_and_takes_no_lane(tmp_path):
    dataset, state = tmp_path / "dataset", tmp_path / "state"
    state.mkdir()
    run_echo(["a", "b"], PoolOptions(dataset, state, 2))
    results, seen = run_echo(["a", "b", "c"], PoolOptions(dataset, state, 2))
    assert seen[:2] == [("a", True), ("b", True)]
    assert seen[2:] == [("c", False)]
    assert results[2].task is not None
    assert results[2].task["lanes"] == 2
    assert all(
        not cached
        for _, cached in run_echo(["a"], PoolOptions(dataset, state, 1, True))[1]
    )


BROKEN = {
    "raises": "ValueError: on",
    "dies": "ended its process with status 5",
    "hangs": "did not answer any more",
    "kills the worker": "the worker ended by SIGKILL",
    "says no event": "wrote to the connection of the process that runs it",
    "is done at once": "no task was sent",
}


def test_a_mishap_is_the_error_of_its_definition_and_of_no_other(tmp_path):
    names = [name for broken in BROKEN for name in (broken, f"behind {broken}")]
    state = tmp_path / "state"
    state.mkdir()
    results, _ = run_echo(names, PoolOptions(tmp_path, state, 1), timeout=3.0)
    for broken, behind in zip(results[::2], results[1::2], strict=True):
        assert (broken.name, broken.error) == (broken.name, BROKEN[broken.name])
        assert not behind.error
        assert behind.task is not None
    # a result with an error is not cached
    _, seen = run_echo(["dies", "behind dies"], PoolOptions(tmp_path, state, 1))
    assert sorted(seen) == [("behind dies", True), ("dies", False)]


def test_interrupted_it_leaves_no_worker(tmp_path):
    def interrupt() -> None:
        time.sleep(2.0)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_echo(["hangs"], PoolOptions(tmp_path, None, 1))
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
