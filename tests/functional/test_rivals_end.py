"""A rival's process ends with its judge, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.builders import ROOT

# it calls once, so that the rival waits for a second call on the page
JUDGE = """
import sys, time
import torch
from pathlib import Path
from types import SimpleNamespace
from generator.dataset.paths import DatasetFile
from generator.evaluation.arena import laid_out
from generator.evaluation.clock.rivals import Rivals
from generator.evaluation.clock.timed_calls import TimedCalls
from kernel_judge.definition import TensorSpec

file = DatasetFile("rmsnorm", "rmsnorm_h128", "definitions/rmsnorm/rmsnorm_h128.json")
rivals = Rivals(Path(sys.argv[1]), file, "cpu", ["pytorch"])
rivals.begin(1 << 20)
calls = TimedCalls("cpu", laid_out({"x": torch.zeros(4)}, {}, {}))
link = rivals.link(calls)
calls.call(link, 0, 1)
print(rivals._process.pid, flush=True)
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
def test_rival_that_waits_for_a_call_ends_with_its_judge(how: int) -> None:
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, str(ROOT)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with judge:
        assert judge.stdout is not None
        rival = int(judge.stdout.readline())
        judge.send_signal(how)
    if not ends(rival):
        os.kill(rival, signal.SIGKILL)
        pytest.fail("the rival waits for ever")
