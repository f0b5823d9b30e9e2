"""Each definition has a result and one clear reason, whatever becomes of its worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from generator.dataset.paths import DatasetFile
from generator.execution import definition_task
from generator.execution.cluster import NoCluster, RayExecutor
from generator.execution.definition_task import DefinitionTask, OutcomeCache, run_task
from generator.execution.local import LocalExecutor
from generator.execution.outcome import DONE, Outcome, Task
from tests.builders import ROOT
from tests.unit.execution.test_child import alive

TIMEOUT = 60.0
NOT_KEPT = OutcomeCache(None)


@dataclass(frozen=True)
class Echoed:
    definition: str
    key: str
    value: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Echoed:
        own = {name: value[name] for name in ("definition", "key", "seconds", "error")}
        if not isinstance(value["rows"], list):
            raise TypeError
        return cls(**own, value=value)


def echo(root: Path) -> DefinitionTask[Echoed]:
    def failed(file: DatasetFile, outcome: Outcome) -> Echoed:
        return Echoed(file.name, "", {"said": outcome.said}, error=outcome.why)

    work = "tests.unit.execution.mishaps:answer"
    arguments = {"own": 1}
    return DefinitionTask(work, TIMEOUT, root, arguments, (), Echoed.from_dict, failed)


def run(
    root: Path, names: Sequence[str], jobs: int = 1, cache: OutcomeCache = NOT_KEPT
) -> tuple[list[Echoed], list[tuple[str, bool]]]:
    """Run the task on definitions of these names; return results and progress."""
    files = [DatasetFile("op", name, f"{name}.json") for name in names]
    for file in files:
        (root / file.path).write_text("{}")
    came = [*run_task(files, echo(root), LocalExecutor(jobs), cache)]
    seen = [(result.definition, is_cached) for _, result, is_cached in came]
    return [result for _, result, _ in sorted(came, key=lambda one: one[0])], seen


@pytest.mark.parametrize(("jobs", "count", "lanes"), [(1, 1, 1), (5, 2, 2), (2, 3, 1)])
def test_jobs_without_a_definition_go_to_those_that_there_are(
    tmp_path, monkeypatch, jobs, count, lanes
):
    monkeypatch.setenv("PLANTED_SECRET", "hidden")
    # kernels that were compiled before lie there
    monkeypatch.setenv("FLASHINFER_WORKSPACE_BASE", "/caches")
    monkeypatch.setenv("HOME", "/home/someone")
    names = [f"d{number}" for number in range(count)]
    results, seen = run(tmp_path, names, jobs)
    assert [result.definition for result in results] == names
    assert sorted(seen) == [(name, False) for name in names]
    for result in results:
        value = result.value
        assert (value["lanes"], value["sharing"], value["own"]) == (lanes, jobs, 1)
        assert value["file"]["name"] == result.definition
        assert value["root"] == str(tmp_path)
        assert value["secret"] is None
        assert (value["caches"], value["home"]) == ("/caches", "/home/someone")


def test_no_module_of_the_current_folder_is_imported(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    results, _ = run(tmp_path, ["a"])
    assert [result.error for result in results] == [""]


def test_what_is_cached_is_not_run_again_until_it_changes(tmp_path):
    cache = OutcomeCache(tmp_path / "state")
    run(tmp_path, ["a", "b"], 2, cache)
    _, seen = run(tmp_path, ["a", "b", "c"], 2, cache)
    assert seen == [("a", True), ("b", True), ("c", False)]
    assert run(tmp_path, ["a"], 1, OutcomeCache(tmp_path / "state", fresh=True))[1] == [
        ("a", False)
    ]


BROKEN = {
    "refuses": "it may not at its place",
    "raises": "ValueError: on at its place",
    "is short of memory": "MemoryError: not enough memory at its place",
    "dies": "ended its process with status 5 at its place",
    "hangs": "did not answer any more at its end",
    "kills the server": "the worker ended by SIGKILL",
    "writes to the link": "wrote to the connection of the process that runs it "
    "at its place",
    "is done at once": "code of the definition reported the end of the work "
    "at its place",
    "answers something else": "the worker's answer is none: KeyError: 'rows'",
}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_mishap_is_the_error_of_its_definition_and_of_no_other(tmp_path, jobs):
    names = [name for broken in BROKEN for name in (broken, f"waits for {broken}")]
    cache = OutcomeCache(tmp_path / "state")
    results, seen = run(tmp_path, names, jobs, cache)
    assert sorted(name for name, _ in seen) == sorted(names)
    for broken, behind in zip(results[::2], results[1::2], strict=True):
        assert broken.error == BROKEN[broken.definition]
        assert not behind.error
    assert results[names.index("hangs")].value["said"] == ["about to hang"]
    # a result with an error is not cached
    _, seen = run(tmp_path, ["dies", "waits for dies"], 1, cache)
    assert sorted(seen) == [("dies", False), ("waits for dies", True)]


def test_one_that_the_system_killed_runs_again(tmp_path):
    results, seen = run(tmp_path, ["is killed once", "other"])
    assert [result.error for result in results] == ["", ""]
    assert [name for name, _ in seen] == ["other", "is killed once"]


def test_a_server_that_is_killed_between_two_tasks_loses_nothing(tmp_path):
    executor = LocalExecutor(1)
    names = [f"d{number}" for number in range(4)]
    files = [DatasetFile("op", name, f"{name}.json") for name in names]
    for file in files:
        (tmp_path / file.path).write_text("{}")

    results: list[Echoed] = []
    for _, result, _ in run_task(files, echo(tmp_path), executor, NOT_KEPT):
        results.append(result)
        if executor._server is not None and len(results) == 1:
            executor._server.kill()
    assert [result.error for result in results] == [""] * 4
    assert sorted(result.definition for result in results) == names


def test_where_no_server_can_start_each_has_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    results, _ = run(tmp_path, ["a", "b"])
    assert [r.error for r in results] == ["the worker ended with status 1"] * 2


def test_on_a_full_disk_it_goes_on_and_says_so_once(tmp_path, monkeypatch):
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(definition_task, "write_atomically", full)
    said: list[str] = []
    state = tmp_path / "state"
    results, _ = run(tmp_path, ["a", "b"], 1, OutcomeCache(state, warn=said.append))
    assert [result.error for result in results] == ["", ""]
    assert said == [f"{state}: results are not kept: No space left on device"]


def test_what_may_be_of_another_text_is_not_cached(tmp_path, monkeypatch):
    task = echo(tmp_path)
    state = tmp_path / "state"
    file = DatasetFile("op", "one", "one.json")
    (tmp_path / "one.json").write_text("{}")

    texts = iter(("a", "b"))
    monkeypatch.setattr(definition_task, "sources", lambda: next(texts))
    assert [*run_task([file], task, LocalExecutor(1), OutcomeCache(state))]
    assert not list(state.iterdir())


def test_interrupted_it_leaves_no_process(tmp_path):
    def interrupt() -> None:
        time.sleep(2.0)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, [f"waits {number}" for number in range(60)])
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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone can")
def test_what_was_left_in_a_session_of_its_own_ends_with_the_task(tmp_path):
    results, _ = run(tmp_path, ["leaves something", "waits"])
    assert not alive(results[0].value["left"])


@pytest.mark.parametrize("module", ["", "tests.unit.execution.mishaps", "no.such"])
def test_a_server_that_begins_early_is_that_of_the_run(module):
    executor = LocalExecutor(1)
    # what it can't import is said by the tasks
    executor.begin(module)
    (server,) = children()
    work = "tests.unit.execution.mishaps:answer"
    tasks = [Task(work, {"file": {"name": "is well"}})] * 2
    outcomes = executor.run(tasks, {}, timeout=60.0)
    _, first = next(outcomes)
    assert first.status == DONE
    assert executor._server is not None
    assert executor._server.pid == server
    outcomes.close()
    assert not children()


# starts an executor, prints the server's process id, and ends at a signal
ASKS = """
import sys, threading, time
from pathlib import Path
from generator.execution.local import LocalExecutor
from generator.execution.outcome import Task
executor = LocalExecutor(1)
file = {"name": "waits"}
tasks = [Task("tests.unit.execution.mishaps:answer", {"file": file})] * 60
work = executor.run(tasks, {}, timeout=60.0)
threading.Thread(target=lambda: list(work), daemon=True).start()
while executor._server is None:
    time.sleep(0.01)
print(executor._server.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("seconds", [0.0, 0.3, 4.0])
def test_a_command_that_is_killed_leaves_no_server(seconds):
    command = subprocess.Popen(
        [sys.executable, "-c", ASKS],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert command.stdout is not None
    server = int(command.stdout.readline())
    # it is starting, importing torch, or at work
    time.sleep(seconds)
    command.kill()
    command.wait()
    command.stdout.close()
    until = time.monotonic() + 20.0
    while alive(server) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(server)


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(NoCluster, match="pip install 'gen-tests"):
        RayExecutor("ray", None)
