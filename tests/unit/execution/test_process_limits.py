"""What a mutant may take is limited in its block, and counted from what is there."""

from __future__ import annotations

import signal

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
