"""The process that compiles kernels: what it is given, what it tells, how it ends."""

from __future__ import annotations

import json
import os
import time

import pytest

from generator.running import warming
from generator.running.warming import Compilation, Job, all_cold, cold, usual_jobs

WORKER = """
import json, os, sys, time
job = json.load(sys.stdin)
print("not an event", file=sys.stderr)
for event in json.loads(os.environ["REFERENCE_EVENTS"]):
    if event == "wait":
        time.sleep(60)
    print(json.dumps(event), flush=True)
print(os.environ.get("CUDA_VISIBLE_DEVICES"), job["jobs"], file=sys.stderr)
sys.exit(int(os.environ["REFERENCE_STATUS"]))
"""
DONE = {"event": "done"}


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """Return what compiles with a worker that prints given events."""
    package = tmp_path / "pretended_warm"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "warm_worker.py").write_text(WORKER)

    def go(events, status=0):
        compilation, lines = begin(events, status)
        return compilation.finish(), lines

    def begin(events, status=0):
        monkeypatch.setenv("REFERENCE_EVENTS", json.dumps(events))
        monkeypatch.setenv("REFERENCE_STATUS", str(status))
        lines = []
        job = Job({"test_x.py": ["a", "b"]}, 3)
        compilation = Compilation("pretended_warm", tmp_path, lines.append)
        compilation.begin(job)
        return compilation, lines

    go.begin = begin
    return go


def test_progress_is_a_line_on_each_module(worker):
    events = [{"event": "compiling", "name": name} for name in ("a", "b")]
    events += [
        {"event": "compiled", "name": "b", "seconds": 19.7},
        {"event": "called", "name": "moe sglang/triton", "seconds": 4.2},
        {"event": "called", "name": "moe sglang/triton", "seconds": 0.3},
    ]
    fine, lines = worker([*events, DONE])
    assert fine
    assert lines == [
        "compiling kernels of 2 definitions, 3 modules at a time",
        "compiled b (1 of 2, 20 s)",
        "called moe sglang/triton (4 s)",
    ]


def test_a_failure_is_a_line_and_no_success(worker):
    fine, lines = worker([{"event": "failed", "name": "a", "why": "no nvcc"}, DONE])
    assert not fine
    assert lines[1:] == ["could not compile a: no nvcc"]


def test_a_worker_that_dies_says_what_it_said_last(worker):
    fine, lines = worker([], status=3)
    assert not fine
    assert lines[1:] == [f"compiling ended with status 3: {_first_gpu()} 3"]


def test_who_waits_for_the_compilers_is_known_while_they_run(worker):
    compilation, lines = worker.begin([{"event": "ready", "name": "b"}, "wait"])
    assert compilation.cold == {"a", "b"}
    compilation.take(wait=True)
    assert compilation.cold == {"a"}
    began = time.monotonic()
    compilation.take(wait=False)
    # a run that is interrupted ends them, and says nothing of it
    compilation.close()
    assert time.monotonic() - began < 10
    assert compilation.cold == set()
    assert len(lines) == 1


def test_definitions_of_which_a_dead_worker_said_nothing_wait_no_more(worker):
    compilation, lines = worker.begin([{"event": "ready", "name": "b"}], status=3)
    while compilation.cold:
        compilation.take(wait=True)
    assert lines[1:] == [f"compiling ended with status 3: {_first_gpu()} 3"]
    compilation.take(wait=True)


def test_a_process_that_is_given_no_job_ends_and_says_nothing(worker, tmp_path):
    lines = []
    idle = Compilation("pretended_warm", tmp_path, lines.append)
    began = time.monotonic()
    idle.close()
    assert time.monotonic() - began < 10
    assert lines == []


def test_the_process_has_what_is_added_to_the_environment(
    worker, tmp_path, monkeypatch
):
    monkeypatch.setenv("REFERENCE_EVENTS", "[]")
    lines = []
    more = {"REFERENCE_STATUS": "5"}
    compilation = Compilation("pretended_warm", tmp_path, lines.append, more)
    compilation.begin(Job({"test_x.py": ["a"]}, 1))
    assert not compilation.finish()
    assert lines[1].startswith("compiling ended with status 5")


def _first_gpu():
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def test_cold_are_the_definitions_that_no_stamp_names(tmp_path, monkeypatch):
    live = {"test_x.py": ["a", "b"], "test_y.py": ["c"]}
    monkeypatch.setenv("FLASHINFER_WORKSPACE_BASE", str(tmp_path))
    monkeypatch.setattr(warming.importlib.metadata, "version", lambda name: "0.6")
    assert cold(live) == live
    assert all_cold()
    for arch, names in {"90a": ["a"], "100a": ["c"]}.items():
        folder = tmp_path / ".cache" / "flashinfer" / "0.6" / arch
        folder.mkdir(parents=True)
        (folder / warming.STAMP).write_text(json.dumps(names))
    assert cold(live) == {"test_x.py": ["b"]}
    assert not all_cold()
    (folder / warming.STAMP).write_text('["c", "b')
    assert cold(live) == {"test_x.py": ["b"], "test_y.py": ["c"]}


def test_without_flashinfer_nothing_is_cold(monkeypatch):
    def absent(name):
        raise warming.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(warming.importlib.metadata, "version", absent)
    assert cold({"test_x.py": ["a"]}) == {}
    assert not all_cold()


def test_some_modules_are_compiled_at_a_time_on_any_machine(monkeypatch):
    for cores, jobs in ((1, 1), (16, 6)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=cores: set(range(n)))
        assert usual_jobs() == jobs
