"""What a mutant may take is limited in its block, and counted from what is there."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from generator.execution.child import Link
from generator.execution.process_limits import TimeIsUp, limit_memory, time_limit
from tests.unit.execution.test_child import of_child


def spins() -> None:
    with time_limit(0.1):
        while True:
            pass


def test_a_limit_of_time_is_lifted_behind_its_block():
    with pytest.raises(TimeIsUp, match=r"more than 0\.1 s"):
        spins()
    with time_limit(60.0):
        total = sum(range(10))
    assert total == 45
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0.0


def test_a_limit_of_memory_is_above_what_is_there_already():
    def grows(link: Link) -> None:
        limit_memory(64 * 2**20)
        small = bytearray(2**20)
        try:
            bytearray(2**28)
        except MemoryError:
            link.send({"event": str(len(small))})

    assert of_child(grows)[0] == {"event": str(2**20)}


def test_large_tensors_get_no_memory_of_their_own_from_the_system():
    # the fourth number of mallinfo2(): how many parts are the system's own
    code = """
import ctypes, sys, torch
from generator.execution.process_limits import keep_freed_memory
class Info(ctypes.Structure):
    _fields_ = [(f"number{n}", ctypes.c_size_t) for n in range(10)]
mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Info
if sys.argv[1] == "keeps":
    keep_freed_memory()
before = mallinfo().number3
large = torch.ones(2 ** 24)
print(mallinfo().number3 - before)
"""
    new = [
        subprocess.run(
            [sys.executable, "-c", code, how],
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()
        for how in ("", "keeps")
    ]
    assert new == ["1", "0"]


def test_freed_memory_is_kept_until_it_is_given_back():
    code = """
import torch
from pathlib import Path
from generator.execution.process_limits import (
    give_back_freed_memory,
    keep_freed_memory,
)
def pages():
    return int(Path("/proc/self/statm").read_text().split()[1])
keep_freed_memory()
before = pages()
# beyond what glibc keeps at the end of its memory otherwise, and between two that stay
large, stays, more = torch.ones(2 ** 24), torch.ones(2 ** 22), torch.ones(2 ** 24)
del large, more
kept = pages()
give_back_freed_memory()
print((kept - before) // 1024, (pages() - before) // 1024)
"""
    kept, left = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    ).stdout.split()
    # of 144 MiB in units of 4 MiB, 16 MiB are in use
    assert int(kept) >= 36
    assert int(left) <= 8
