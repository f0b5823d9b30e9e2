"""A rival's process ends with its judge, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from generator.evaluation.clock import nursery
from tests.builders import ROOT

# it calls once, so that the rival waits for a second call on the page
JUDGE = """
import sys, time
import torch
from pathlib import Path
from types import SimpleNamespace
from generator.dataset.paths import DatasetFile
from generator.evaluation.arena import laid_out
from generator.evaluation.clock import nursery
from generator.evaluation.clock.rivals import Rivals
from generator.evaluation.clock.timed_calls import TimedCalls
from kernel_judge.definition import TensorSpec

file = DatasetFile("rmsnorm", "rmsnorm_h128", "definitions/rmsnorm/rmsnorm_h128.json")
if sys.argv[2] == "ForkedRival":
    nursery.prepare()
rivals = Rivals(Path(sys.argv[1]), file, "cpu", ["pytorch"])
rivals.begin(1 << 20)
calls = TimedCalls("cpu", laid_out({"x": torch.zeros(4)}, {}, {}))
link = rivals.link(calls, calls.memory)
calls.call(link, 0, 1)
print(type(rivals._process).__name__, rivals._process.pid, flush=True)
time.sleep(60)
"""


def ends(process: int) -> bool:
    """Return whether a process ends within 10 seconds."""
    until = time.monotonic() + 10.0
    while time.monotonic() < until:
        try:
            with open(f"/proc/{process}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == b"Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("begun", ["StartedRival", "ForkedRival"])
def test_rival_that_waits_for_a_call_ends_with_its_judge(begun: str, how: int) -> None:
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, str(ROOT), begun],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with judge:
        assert judge.stdout is not None
        kind, pid = judge.stdout.readline().split()
        assert kind == begun
        rival = int(pid)
        judge.send_signal(how)
    if not ends(rival):
        os.kill(rival, signal.SIGKILL)
        pytest.fail("the rival waits for ever")


# one whose kernels are never done, and one after the nursery is gone
NURSERY = """
import os, signal, sys, time
from pathlib import Path
from generator.dataset.paths import DatasetFile
from generator.evaluation.clock import nursery
from generator.evaluation.clock.rivals import Rivals
from generator.execution.limits import lives

def begun():
    rivals = Rivals(Path(sys.argv[1]), file, "cpu", ["pytorch"])
    rivals.begin(1 << 20)
    return rivals, rivals._process

file = DatasetFile("rmsnorm", "rmsnorm_h128", "definitions/rmsnorm/rmsnorm_h128.json")
nursery.prepare()
first, process = begun()
os.kill(process.pid, signal.SIGSTOP)
first.close()
print(type(process).__name__, lives(process.pid))
second, process = begun()
os.kill(nursery._ours[0]._child.pid, signal.SIGKILL)
second.close()
until = time.monotonic() + 10
while lives(process.pid) and time.monotonic() < until:
    time.sleep(0.01)
print(type(process).__name__, lives(process.pid))
third, process = begun()
print(type(process).__name__, lives(process.pid))
third.close()
print(lives(process.pid))
"""


@pytest.mark.slow
def test_fork_that_hangs_is_ended_and_a_nursery_that_is_gone_does_no_harm() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NURSERY, str(ROOT)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[:4] == [
        "ForkedRival False",
        "ForkedRival False",
        "StartedRival True",
        "False",
    ]


def test_process_with_threads_makes_no_nursery() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(nursery.prepare).result()
    assert nursery._ours == []
