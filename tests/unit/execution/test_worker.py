"""A worker ends with its command, and its children have no connection of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest

from generator.execution.worker_process import start_worker
from tests.builders import ROOT
from tests.unit.execution.test_child import alive

WORKER = "generator.execution.worker"
# starts a worker on a minute of work, prints its process id, and ends at a signal
ASKS = f"""
import json, sys, time
from generator.execution.worker_process import start_worker
worker = start_worker({WORKER!r})
worker.stdin.write(sys.argv[1] + "\\n")
worker.stdin.flush()
print(worker.pid, flush=True)
time.sleep(60)
"""


def task(seconds: float, **more: Any) -> str:
    value: Mapping[str, Any] = {
        "work": "tests.unit.execution.sleeping",
        "timeout": 90.0,
        "seconds": seconds,
        # so that nobody notices that there is none to be told
        "is_quiet": True,
        **more,
    }
    return json.dumps(value)


@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_one_whose_command_is_killed_does_not_begin_to_work(seconds):
    command = subprocess.Popen(
        [sys.executable, "-c", ASKS, task(60.0)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert command.stdout is not None
    worker = int(command.stdout.readline())
    # it is starting, or importing torch
    time.sleep(seconds)
    command.kill()
    command.wait()
    command.stdout.close()
    until = time.monotonic() + 20.0
    while alive(worker) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(worker)


def test_its_children_have_none_of_its_pipes():
    worker = start_worker(WORKER)
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(task(0.0) + "\n")
    worker.stdin.flush()
    event = json.loads(worker.stdout.readline())
    assert event["pid"] != worker.pid
    assert event["pipes"] == []
    assert json.loads(worker.stdout.readline())["event"] == "done"
    worker.stdin.close()
    assert worker.wait(30.0) == 0
    worker.stdout.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone can")
def test_what_was_left_in_a_session_of_its_own_ends_with_the_definition():
    worker = start_worker(WORKER)
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(task(0.0, leaves=True) + "\n")
    worker.stdin.flush()
    events = [json.loads(worker.stdout.readline()) for _ in range(3)]
    assert [event["event"] for event in events] == ["at", "left", "done"]
    until = time.monotonic() + 20.0
    while alive(events[1]["pid"]) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(events[1]["pid"])
    worker.stdin.close()
    assert worker.wait(30.0) == 0
    worker.stdout.close()
