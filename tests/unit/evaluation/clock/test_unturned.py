"""Outputs are read when the device has turned to the callee, or count for nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from generator.evaluation.arena import laid_out
from generator.evaluation.clock import timed_calls
from generator.evaluation.clock.callee import EMPTY, TWICE, WAITS
from generator.evaluation.clock.contender import Contender
from generator.evaluation.clock.quiet_calls import QuietCalls
from generator.evaluation.clock.session_result import SessionResult, Untimed
from generator.evaluation.clock.timed_calls import CalleeLink, CallTimes, TimedCalls
from generator.evaluation.clock.timing_session import TimingSession
from generator.evaluation.verdict import Refused
from kernel_judge.definition import TensorSpec

ZERO_MS, WORK_MS, UNTURNED_MS = 0.281, 0.01, 0.09
RIGHT, WRONG = torch.ones(4), torch.zeros(4)


class Device:
    """Calls on a device that does not turn to the solution where `skips` says so."""

    device, filled = "cuda", ()
    # from the clock's start to the answer of who waits
    after_ms = 0.2

    def __init__(
        self,
        skips: Callable[[int], bool],
        output_bytes: int = 16,
        copy_ms: float = 0.0,
        delayed_ms: float = 0.0,
    ) -> None:
        self.layout = SimpleNamespace(inputs=[], outputs=[{"bytes": output_bytes}])
        self.skips, self.count, self.copy_ms = skips, 0, copy_ms
        self.read, self.delayed_ms = RIGHT, delayed_ms

    writes = TimedCalls.writes

    def stage(self, inputs: Any) -> None:
        self.staged = inputs

    def call(self, link: Any, which: int, seed: int, hold_ms: float = 0.4) -> CallTimes:
        self.read, raw, delayed = RIGHT, ZERO_MS + WORK_MS, 0.0
        if which & (WAITS - 1) in (EMPTY, TWICE):
            raw = ZERO_MS + 0.003 * (1 + (which & (WAITS - 1) == TWICE))
        elif link == "solution":
            self.count += 1
            delayed = self.delayed_ms
            # those that wait for the device have done their work
            if self.skips(self.count) and not which & WAITS:
                self.read, raw = WRONG, UNTURNED_MS
        raw += self.copy_ms
        host = self.host_ms(link)
        # who does not wait has launched all by then, or the device waits for it
        after = self.after_ms if which & WAITS else host - hold_ms
        raw += max(after, 0.0) * (not which & WAITS)
        parts = hold_ms, delayed, 0.02, 0.1, raw, after
        return CallTimes(raw, host, *parts, {}, hold_ms)

    def host_ms(self, link: Any) -> float:
        """Return how long launches take."""
        return 0.1

    def outputs(self) -> list[torch.Tensor]:
        return [self.read]

    def changed(self) -> bool:
        return False

    def hold_for(self, launches_ms: float) -> float:
        return min(max(launches_ms, 0.4), 1.5)


def result_of(device: Device) -> SessionResult:
    solution = Contender("", "solution", 1)  # type: ignore[arg-type]
    rival = Contender("pytorch", "rival", 1)  # type: ignore[arg-type]
    fresh = SimpleNamespace(next=dict, is_fresh=True)
    telemetry = SimpleNamespace(sample=lambda: None)
    others: Any = fresh, solution, [rival], "empty", True, 7, telemetry, None
    return TimingSession(device, *others).run()  # type: ignore[arg-type]


def wrong_ones(result: SessionResult) -> int:
    return sum(call.outputs[0] is WRONG for call in result.judged)


@pytest.mark.parametrize("copy_ms", [0.0, 1.4])
def test_call_that_the_device_missed_once_is_neither_timed_nor_judged(
    copy_ms: float,
) -> None:
    # the twenty-fifth is well behind the warm-up
    result = result_of(Device(lambda number: number == 25, copy_ms=copy_ms))
    assert wrong_ones(result) == 0
    assert result.judged
    assert result.timing["latency_ms"] == pytest.approx(WORK_MS, abs=1e-6)
    assert min(result.figures[""]) == pytest.approx(WORK_MS, abs=1e-6)


@pytest.mark.parametrize("every", [2, 6, 10])
def test_who_launches_nothing_now_and_then_is_judged_for_it(every: int) -> None:
    assert wrong_ones(result_of(Device(lambda number: number % every == 0))) > 0


def test_who_never_launches_anything_has_no_time() -> None:
    with pytest.raises(Refused, match="it launched nothing in any call"):
        result_of(Device(lambda number: number > 8))


def test_who_has_nothing_to_compute_needs_no_turn() -> None:
    result = result_of(Device(lambda number: number > 8, output_bytes=0))
    assert result.timing["latency_ms"] == result.timing["resolution_ms"]


@pytest.mark.parametrize(
    ("rows", "filled", "writes"),
    [(4, (), True), (0, (), False), (0, (0,), True)],
)
def test_device_turns_to_who_has_a_byte_to_write(
    rows: int, filled: tuple[int, ...], writes: bool
) -> None:
    layout = laid_out(
        {"x": torch.zeros(4)}, {"y": TensorSpec(("n",), "float32")}, {"n": rows}
    )
    calls = TimedCalls("cpu", layout, filled)
    assert calls.writes is writes
    calls.close()


class Event:
    """An event that has happened."""

    def record(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, _: Event) -> float:
        return 0.3


class LatePage:
    """A page on which the callee answers a while after the values were there."""

    def __init__(self, after: float) -> None:
        self.after, self.answered = after, 0.0

    def is_answered(self, _: int) -> bool:
        return False

    def wait_answered(self, *_: Any) -> None:
        time.sleep(self.after)
        self.answered = time.perf_counter()

    def text(self) -> dict[str, Any]:
        return {}

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return calls on a device that has done everything at once."""
    monkeypatch.setattr(timed_calls, "reset_persisting_l2", lambda: None)
    monkeypatch.setattr(timed_calls._cuda, "synchronize", lambda: None)
    monkeypatch.setattr(timed_calls._cuda, "_sleep", lambda _: None)
    calls: Any = object.__new__(TimedCalls)
    calls.memory = None
    calls._cuda, calls._evicts = True, torch.zeros(1)
    calls._started = calls._slept = calls._written = calls._copied_out = Event()
    calls._wipe = calls._write = lambda: None
    calls._copies = lambda *_: []
    return calls


@pytest.mark.parametrize("waits", [False, True])
def test_outputs_are_read_a_turn_after_a_late_answer(
    waits: bool, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[float] = []
    monkeypatch.setattr(timed_calls, "_TURNS_SECONDS", 2e-3)
    monkeypatch.setattr(
        timed_calls, "_copy", lambda _: copied.append(time.perf_counter())
    )
    page: Any = LatePage(4e-3)
    held.call(CalleeLink(page), 1 | (WAITS if waits else 0), 5)
    after = copied[0] - page.answered
    # who waited has no work left
    assert after >= 2e-3 if not waits else after < 2e-3


def test_time_in_which_a_callee_may_begin_something_counts_as_delay(held: Any) -> None:
    """A kernel that waits for the values is there only if it began a time slice before."""
    page: Any = LatePage(0.0)
    page.wait_ready = lambda *_: time.sleep(3e-3)
    assert held.call(CalleeLink(page), 1, 5).delayed >= 3.0


def test_who_is_not_ready_for_a_while_has_no_times() -> None:
    why = r"GPU was busy in 60 of 60 calls .*\(longer than usual: their start\)"
    with pytest.raises(Untimed, match=why):
        result_of(Device(lambda _: False, delayed_ms=1.5))


@pytest.mark.parametrize("until", [8, 20])
def test_a_disturbance_that_passes_leaves_a_workload_its_times(until: int) -> None:
    """Eight calls of the warm-up, or twelve behind it, are of no session's that goes on."""
    device = Device(lambda _: False)
    call = device.call

    def disturbed(link: Any, which: int, *how: Any) -> CallTimes:
        times = call(link, which, *how)
        is_early = link == "solution" and device.count <= until
        return replace(times, turning=0.3) if is_early else times

    device.call = disturbed  # type: ignore[method-assign]
    result = result_of(device)
    assert result.timing["latency_ms"] == pytest.approx(WORK_MS, abs=1e-6)
    assert result.timing["void"] == until - 8


@pytest.mark.parametrize("busy", ["solution", "rival"])
def test_work_of_others_refuses_nobody(busy: str) -> None:
    """Work that nobody knows the owner of comes in between two calls of three."""
    device, counts = Device(lambda _: False), {"solution": 0, "rival": 0}
    call = device.call

    def others(link: Any, which: int, *how: Any) -> CallTimes:
        times = call(link, which, *how)
        if link != busy:
            return times
        counts[link] += 1
        return replace(times, held=times.held + 2.4 * (counts[link] % 3 > 0))

    device.call = others  # type: ignore[method-assign]
    with pytest.raises(Untimed, match="GPU was busy"):
        result_of(device)


class Waiting(Device):
    """A device on which a call of 1.5 ms is waited for: an answer takes a while to come."""

    work_ms, way_ms, behind_ms = 1.5, 0.05, 0.15

    def __init__(self, answers_early: bool) -> None:
        super().__init__(lambda _: False)
        self.answers_early = answers_early

    def call(self, link: Any, which: int, *how: Any) -> CallTimes:
        times = super().call(link, which, *how)
        waits = bool(which & WAITS)
        is_early = link == "solution" and self.answers_early
        works = which & (WAITS - 1) not in (EMPTY, TWICE)
        raw = times.raw + self.work_ms * works + self.way_ms * (waits and not is_early)
        # the copy of who answers early is launched when the values are there
        behind = raw - 0.06 if is_early or not waits else self.behind_ms
        return replace(times, raw=raw, behind=behind)


@pytest.mark.parametrize("early", [False, True])
def test_who_does_not_wait_is_not_taken_for_faster(early: bool) -> None:
    timing = result_of(Waiting(early)).timing
    assert timing["latency_ms"] == pytest.approx(1.5 + WORK_MS, abs=1e-3)
    assert timing["speedup_over_production"] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("part", "more_ms"),
    # what another's turn costs at least; where clocks rose the hold is as short as ever
    [("turning", 0.14), ("writing", 0.28), ("held", 0.28), ("delayed", 2.1)],
)
def test_a_turn_of_another_before_the_clock_starts_is_noticed(
    part: str, more_ms: float
) -> None:
    device = Device(lambda _: False)
    call = device.call

    def with_a_turn(link: Any, which: int, *how: Any) -> CallTimes:
        times = call(link, which, *how)
        if link != "solution" or device.count % 8:
            return times
        # what is done before the clock starts is not in the figure
        changed: Any = {part: getattr(times, part) + more_ms, "raw": ZERO_MS + 1e-3}
        return replace(times, **changed)

    device.call = with_a_turn  # type: ignore[method-assign]
    result = result_of(device)
    assert result.timing["void"] > 0
    assert min(result.figures[""]) == pytest.approx(WORK_MS, abs=1e-6)


def test_turning_and_writing_are_the_judges(held: Any) -> None:
    times = held.call(CalleeLink(LatePage(0.0)), 1, 5)  # type: ignore[arg-type]
    assert 0.0 <= times.turning < times.delayed
    assert times.writing == times.held == 0.3
    # launched when the values were there, and copied 0.3 ms after that
    assert times.behind < 0.3


def test_where_processes_work_at_once_nothing_is_timed() -> None:
    device = Device(lambda _: False)
    # under MPS the empty call's kernel is done while the judge's hold goes on
    device.after_ms = -0.3
    with pytest.raises(Untimed, match="run at once here"):
        result_of(device)


def test_a_kernel_that_is_there_shows_wherever_the_judge_waits(
    held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed_calls, "reset_persisting_l2", lambda: time.sleep(2e-3))
    page: Any = LatePage(0.0)
    assert held.call(CalleeLink(page), 1, 5).turning >= 2.0


@pytest.mark.parametrize(("more_ms", "is_busy"), [(0.02, False), (0.05, True)])
def test_who_uses_the_memory_beside_the_writing_is_noticed(
    more_ms: float, is_busy: bool
) -> None:
    usual = Device(lambda _: False).call("empty", EMPTY, 5)
    quiet = QuietCalls()
    quiet.add(usual)
    assert quiet.is_busy(replace(usual, writing=usual.writing + more_ms)) is is_busy
    assert quiet.why() == ("the writing" if is_busy else "")


def test_rivals_never_have_values_that_the_solution_will_have() -> None:
    """What lies in memory that it has, a copy engine brings it while it is stopped."""
    device, seen = Device(lambda _: False), []
    call = device.call

    def remembered(link: Any, which: int, *how: Any) -> CallTimes:
        seen.append((link, id(device.staged)))
        kept.append(device.staged)
        return call(link, which, *how)

    kept: list[Any] = []
    device.call = remembered  # type: ignore[method-assign]
    result = result_of(device)
    own = [values for link, values in seen if link == "solution"]
    assert len(set(own)) == len(own) > 20
    known: set[int] = set()
    for link, values in seen:
        if link == "solution":
            known.add(values)
        assert values in known or values not in own
    # and those of a call of the solution are others' as well
    beside = [values for link, values in seen if link == "rival"]
    assert len(set(beside) & set(own)) > 10
    assert result.judged


def test_who_writes_to_arguments_of_rivals_has_no_times() -> None:
    device = Device(lambda _: False)
    call, last = device.call, []

    def written(link: Any, which: int, *how: Any) -> CallTimes:
        last[:] = [link]
        return call(link, which, *how)

    device.call = written  # type: ignore[method-assign]
    device.changed = lambda: last == ["rival"]  # type: ignore[method-assign]
    with pytest.raises(Untimed, match="the arguments of pytorch were written to"):
        result_of(device)


@pytest.mark.parametrize("zero", [0.2, 0.281, 0.285])
def test_ratio_of_equal_calls_does_not_depend_on_empty_ones(zero: float) -> None:
    """One figure is taken off for all, of one process, whichever it is."""
    device = Device(lambda _: False)
    call = device.call

    def other(link: Any, which: int, *how: Any) -> CallTimes:
        times = call(link, which, *how)
        is_empty = link == "empty"
        return replace(times, raw=times.raw + zero - ZERO_MS) if is_empty else times

    device.call = other  # type: ignore[method-assign]
    timing = result_of(device).timing
    assert timing["speedup_over_production"] == pytest.approx(1.0, abs=1e-9)
    assert timing["latency_ms"] == pytest.approx(ZERO_MS + WORK_MS - zero, abs=1e-6)
