"""The device is held until each has launched its work; what is late has no figure."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from generator.evaluation.arena import laid_out
from generator.evaluation.clock.contender import Contender
from generator.evaluation.clock.holds import Holds
from generator.evaluation.clock.timed_calls import TimedCalls
from tests.unit.evaluation.clock.test_unturned import WORK_MS, Device, result_of


def test_device_is_held_until_the_launches_of_each_are_done() -> None:
    calls = TimedCalls("cpu", laid_out({"x": torch.zeros(4)}, {}, {}))
    quick = Contender("", None, 1, waits=False, host=[0.1, 0.1])  # type: ignore[arg-type]
    late = Contender("reference", None, 1, waits=False, host=[0.6, 0.5, 9.0])  # type: ignore[arg-type]
    # of who waits for the device the host's time is the device's as well
    waiting = Contender("a", None, 1, waits=True, host=[7.0])  # type: ignore[arg-type]
    Holds(calls).fit([quick, late, waiting])
    assert late.hold == pytest.approx(1.3 * 0.6)
    assert quick.hold == waiting.hold == 0.4
    calls.close()


class Launching(Device):
    """A device on which launches take 0.5 ms in half of the calls behind the warm-up."""

    def __init__(self, late: str, most_ms: float = 0.5) -> None:
        super().__init__(lambda _: False)
        self.late, self.most_ms, self.made, self.lates = late, most_ms, 0, 0

    def host_ms(self, link: Any) -> float:
        self.made += link == self.late
        is_late = link == self.late and self.made > 16 and self.made % 2 == 0
        self.lates += is_late
        return self.most_ms if is_late else 0.1


@pytest.mark.parametrize("late", ["solution", "rival"])
def test_launches_that_become_slower_are_in_nobodys_figure(late: str) -> None:
    device = Launching(late)
    result = result_of(device)
    name = "" if late == "solution" else "pytorch"
    assert device.lates > 5
    assert max(result.figures[name]) == pytest.approx(WORK_MS, abs=1e-6)
    assert result.timing["speedup_over_production"] == pytest.approx(1.0, abs=1e-3)


def test_who_launches_later_than_the_device_is_held_is_timed_so() -> None:
    """A handful of its calls don't count: until the hold is as long as a time slice allows."""
    device = Launching("solution", most_ms=1.9)
    result = result_of(device)
    late = [ms for ms in result.figures[""] if ms > 2 * WORK_MS]
    assert late == pytest.approx([WORK_MS + 0.4] * len(late), abs=1e-6)
    assert device.lates - 6 <= len(late) < device.lates
