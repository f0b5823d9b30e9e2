"""One workload: the solution and its rivals in turn, on the same values, in an order by lot."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from generator.evaluation.clock.callee import EMPTY, TWICE, WAITS
from generator.evaluation.clock.calls_to_judge import CallsToJudge
from generator.evaluation.clock.contender import (
    REFERENCE,
    Contender,
    EmptyCalls,
    fastest,
    may_be_faster,
    resolved,
    timing_of,
)
from generator.evaluation.clock.fresh_inputs import FreshInputs
from generator.evaluation.clock.holds import Holds
from generator.evaluation.clock.outputs import number_at
from generator.evaluation.clock.page import Silent
from generator.evaluation.clock.quiet_calls import QuietCalls
from generator.evaluation.clock.sampling import (
    LEAST,
    OF_RATIO,
    OF_UNRESOLVED,
    error_of_ratio,
)
from generator.evaluation.clock.session_result import (
    CandidateCall,
    SessionResult,
    Untimed,
)
from generator.evaluation.clock.telemetry import Sample, Telemetry, summary
from generator.evaluation.clock.timed_calls import (
    SLICE_MS,
    CalleeLink,
    CallTimes,
    TimedCalls,
    switching,
)
from generator.evaluation.draws import draws_of
from generator.evaluation.returned import check_returned, parsed
from generator.evaluation.seconds_of import SecondsOf
from generator.evaluation.verdict import REWARD_HACK, RUNTIME_ERROR, Refused
from generator.problems.messages import one_line

_EMPTIES, _WARM_UPS = 8, 4
_MOST = 400
# of a workload whose medians are not settled: then it is said that they are not
_SECONDS = 1.4
# of a rival that takes long, and of one that is not among the fastest: nobody waits for more of
# its figures
_RIVALS_SECONDS, _FAR_SECONDS, _RIVALS_LEAST = 0.4, 0.1, 3
# work that is surely done before a time slice of the GPU ends; else it is waited for
_SHORT_MS = 1.2
# without its two changes of context, 0.28 ms, a call takes a third of an empty one's time, and
# what the copy takes
_TURNED, _CHANGES_MS = 0.75, 0.1
# of what is less a kernel may need more, such as a wrapper's workspace
_ROOM_BYTES = 2 << 30
_MOST_DISTURBED = 3 * LEAST  # calls: until then a disturbance may pass
_SEEDS = 2**31


class TimingSession:
    """The timing of one workload. `secret` seeds values, seeds and the order."""

    def __init__(
        self,
        calls: TimedCalls,
        fresh: FreshInputs,
        solution: Contender,
        rivals: Sequence[Contender],
        empty: CalleeLink,
        passes_outputs: bool,
        secret: int | str,
        telemetry: Telemetry,
        gone: Callable[[Silent], Refused],
    ) -> None:
        self._calls, self._fresh = calls, fresh
        self._solution, self._rivals = solution, list(rivals)
        self._empty, self._passes = empty, passes_outputs
        self._draw = draws_of(secret, "timed calls")
        self._seeds = draws_of(secret, "seeds of timed calls")
        self._telemetry, self._gone = telemetry, gone
        self._zero = EmptyCalls()
        self._quiet = QuietCalls()
        self._candidates = CallsToJudge(self._draw)
        self._last: CandidateCall | None = None
        self._others: list[list[Any]] = []
        self._seconds = SecondsOf()
        self._holds = Holds(calls)

    def run(self) -> SessionResult:
        """Return the figures.

        Raises Refused for what the solution did, Untimed where the GPU was slowed
        down in every round, or a rival has no memory beside it.
        """
        with switching():
            return self._run()

    def _run(self) -> SessionResult:
        self._stage()
        self._measure_empties()
        for rival in list(self._rivals):
            if not self._warmed(rival):
                self._rivals.remove(rival)
        for _ in range(2 * _WARM_UPS):
            self._turn()
        self._holds.fit((self._solution, *self._rivals))
        throttled, end = 0, time.monotonic() + _SECONDS
        samples: list[Sample] = []
        after = self._sampled()
        for contender in (self._solution, *self._rivals):
            contender.raw, contender.host, contender.plans = [], [], []
            contender.spent, contender.void = 0.0, 0
        turns = 0
        figures = self._solution.raw
        while turns < _MOST and (len(figures) < LEAST or time.monotonic() < end):
            before = after
            self._turn()
            after = self._sampled()
            samples += [] if after is None else [after]
            if (before and before.is_throttled) or (after and after.is_throttled):
                throttled += 1
                self._forget_turn()
                if throttled > _MOST:
                    break
                continue
            turns += 1
            if len(figures) >= LEAST and self._is_known():
                break
        self._settle()
        self._check_void()
        about = summary(samples, throttled)
        if throttled > _MOST and not turns:
            why = ", ".join(about["throttle_reasons"])
            raise Untimed(f"the GPU was slowed down throughout ({why})")
        timing = timing_of(self._solution, self._rivals, self._zero)
        timing |= {"fresh": self._fresh.is_fresh, **about}
        everybody = (self._solution, *self._rivals)
        figures_of = {one.name: self._zero.figures(one) for one in everybody}
        counts = len(self._solution.raw), self._solution.unturned
        judged = self._candidates.to_judge(*counts)
        return SessionResult(timing, judged, figures_of, self._seconds.as_dict())

    def _turn(self) -> None:
        """Call everybody once, in an order by lot; the solution's call has fresh values.

        Rivals that come before it have those of its last call: they lie in memory that it
        has, and a copy engine goes on while its processes are stopped.
        """
        self._marks = {}
        order: list[Contender | None] = [self._solution, None]
        order += self._called_now()
        self._draw.shuffle(order)
        for contender in order:
            if contender is None:
                waits = any(r.waits for r in (self._solution, *self._rivals))
                kinds = [(False, EMPTY), (False, TWICE), (True, EMPTY)][: 2 + waits]
                self._measure_empty(*self._draw.choice(kinds))
                continue
            if contender is self._solution:
                self._settle()
                inputs = self._stage()
            self._marks[contender.name] = len(contender.raw)
            timed = self._called(contender)
            with self._seconds.part("outputs"):
                if contender is self._solution:
                    call = self._kept(inputs, timed)
                    self._last = None if self._is_void else call
                else:
                    self._check_arguments(contender.name)
                    self._others += [] if timed.raised else [self._calls.outputs()]

    def _settle(self) -> None:
        """Keep the solution's last call, with what others made of its values since."""
        last, others, self._last, self._others = self._last, self._others, None, []
        with self._seconds.part("outputs"):
            if last is not None and self._is_unturned:
                self._candidates.set_aside(last)
            elif last is not None:
                self._candidates.add(last, others)

    def _check_arguments(self, of: str) -> None:
        """Raise Untimed where something wrote to a kernel's arguments: it may be slower."""
        if of != REFERENCE and self._calls.changed():
            raise Untimed(f"the arguments of {of} were written to while it was called")

    def _called(self, contender: Contender) -> CallTimes:
        """Make one call and keep its figure. Raises Refused."""
        which = contender.which | (WAITS if contender.waits else 0)
        is_solution = contender is self._solution
        begun = time.monotonic()
        try:
            seed = self._seeds.randrange(_SEEDS)
            timed = self._calls.call(contender.link, which, seed, contender.hold)
        except Silent as silent:
            if is_solution:
                raise self._gone(silent) from None
            raise
        spent = time.monotonic() - begun
        contender.spent += spent
        self._seconds.add(f"calls of {contender.name or 'the solution'}", spent)
        is_busy, is_long, is_unturned = self._quiet.is_busy(timed), False, False
        if not contender.waits and self._calls.device == "cuda":
            # the device may have turned to the judge before the work was done
            is_long = timed.raw > SLICE_MS
            zero = self._zero.of(False)
            turned = max(_TURNED * zero, zero - _CHANGES_MS)
            is_unturned = timed.raw < turned and self._calls.writes
        if is_solution:
            self._is_void, self._is_unturned = is_busy or is_long, is_unturned
        contender.void += is_busy
        contender.unturned += is_unturned
        contender.long = contender.long + 1 if is_long else 0
        contender.longs += is_long
        if contender.is_often_long and not contender.waits:
            contender.begin_anew(waits=True)
        if is_busy or is_long or is_unturned:
            self._check_void(_MOST_DISTURBED)
            return timed
        if self._holds.grow(contender, timed):
            return timed
        waited = contender.waits and self._zero.waited(timed.behind)
        contender.raw.append((waited, timed.raw))
        contender.host.append(timed.host)
        if contender.waits and len(contender.raw) % _WARM_UPS == 0:
            self._choose_waits(contender)
        if isinstance(timed.said, dict) and not is_solution:
            plan = timed.said.get("plan_ms")
            contender.plans += [float(plan)] if plan is not None else []
        return timed

    def _watched(self) -> list[Contender]:
        return [self._solution, *self._called_now()]

    def _check_void(self, least: int = LEAST) -> None:
        """Raise Untimed where the device is busy too often: whose work it is nobody sees."""
        for one in self._watched():
            if one.calls >= least and one.is_disturbed:
                raise Untimed(
                    f"the GPU was busy in {one.void} of {one.calls} calls before their "
                    f"values were there (longer than usual: {self._quiet.why()})"
                )

    def _kept(self, inputs: Mapping[str, Any], timed: CallTimes) -> CandidateCall:
        """Return a call of the solution, held against what is declared. Raises Refused."""
        said, calls = timed.said, self._calls
        if not isinstance(said, dict):
            raise Refused(REWARD_HACK, "it wrote to the page of the judge")
        if "raised" in said:
            raise Refused(RUNTIME_ERROR, one_line(str(said["raised"]), 400))
        outputs = calls.outputs()
        if not self._passes:
            returned = parsed(said.get("outputs"), False)
            assert returned is not None
            check_returned(returned, calls.layout, calls.device)
            for number, one in enumerate(returned):
                if one.value is not None:
                    outputs[number] = number_at(one.value, calls.layout.outputs[number])
        if calls.changed():
            raise Refused(REWARD_HACK, "it writes to what is no output")
        filled = tuple(calls.input(number) for number in calls.filled)
        return CandidateCall(inputs, tuple(outputs), filled)

    def _stage(self) -> Mapping[str, Any]:
        with self._seconds.part("values"):
            inputs = self._fresh.next()
            self._calls.stage(inputs)
        return inputs

    def _sampled(self) -> Sample | None:
        with self._seconds.part("telemetry"):
            return self._telemetry.sample()

    def _measure_empties(self) -> None:
        """Measure empty calls. Raises Untimed where processes don't take turns."""
        after = []
        for _ in range(_EMPTIES):
            after.append(self._measure_empty(True).after)
            self._measure_empty(False)
            self._measure_empty(False, TWICE)
        if self._calls.device == "cuda" and statistics.median(after) < 0.0:
            # its kernel was done while the judge held the device
            raise Untimed(
                "kernels of two processes run at once here, as under MPS, or the GPU was busy"
            )

    def _measure_empty(self, waits: bool, kind: int = EMPTY) -> CallTimes:
        which = kind | (WAITS if waits else 0)
        with self._seconds.part("empty calls"):
            timed = self._calls.call(self._empty, which, self._seeds.randrange(_SEEDS))
        if kind == TWICE:
            self._zero.add_twice(timed.raw)
        else:
            self._zero.add(waits, timed.raw, timed.behind)
        self._quiet.add(timed)
        return timed

    def _warmed(self, rival: Contender) -> bool:
        """Return whether a rival can be called, after it was warmed up."""
        for _ in range(_WARM_UPS):
            begun = time.monotonic()
            try:
                timed = self._called(rival)
            except (Silent, Refused):
                return False
            if timed.raised:
                # a kernel that does not run here is no reason against the solution
                self._check_room(rival)
                return False
            is_slow = time.monotonic() - begun > _RIVALS_SECONDS
            if is_slow and rival.raw:
                break
        return True

    def _check_room(self, rival: Contender) -> None:
        """Raise Untimed where a rival may have failed because others have the memory."""
        if self._calls.device != "cuda":
            return
        free, _ = torch.cuda.mem_get_info()
        if free < _ROOM_BYTES:
            why = f"{rival.name} fails beside it, which leaves {free >> 20} MiB of the GPU"
            raise Untimed(why)

    def _choose_waits(self, contender: Contender) -> None:
        """Wait for the device only where work may last until its time slice ends.

        Figures of both kinds don't go together: an answer after a wait comes later.
        """
        figures = self._zero.figures(contender)[-_WARM_UPS:]
        if figures and statistics.median(figures) <= _SHORT_MS:
            contender.begin_anew(waits=False)

    def _called_now(self) -> list[Contender]:
        """Return the rivals of a turn: at first all, then those that are compared with.

        A speedup is over the fastest kernel; the time of others is known by LEAST figures.
        """
        timed = [r for r in self._rivals if r.raw]
        timed.sort(key=lambda r: (r.name == REFERENCE, self._zero.latency(r)))
        # the reference is compared with where no kernel runs; a second kernel while it may
        # be the fastest
        near = {r.name for r in timed[:1]}
        near |= {
            r.name
            for r in timed[1:2]
            if r.name != REFERENCE and may_be_faster(r, timed[0], self._zero)
        }
        return [
            r
            for r in self._rivals
            if len(r.raw) < _RIVALS_LEAST
            or (len(r.raw) < LEAST and r.spent < _FAR_SECONDS)
            or (r.name in near and self._has_time(r))
        ]

    def _has_time(self, rival: Contender) -> bool:
        """Return whether a rival took little yet, or no longer than the solution."""
        return rival.spent < max(_RIVALS_SECONDS, 2.0 * self._solution.spent)

    def _is_known(self) -> bool:
        """Return whether the ratio to the fastest kernel is known well enough to end.

        A disturbance that passes is waited for.
        """
        if any(one.is_disturbed for one in self._watched()):
            return False
        kernels = [r for r in self._rivals if r.name != REFERENCE]
        # one whose figures were dropped a moment ago gets others
        nearest = [fastest(kernels, self._zero) or kernels[0]] if kernels else []
        figures = list(map(self._zero.figures, [self._solution, *nearest]))
        is_resolved = resolved(self._solution, self._zero)
        return error_of_ratio(*figures) <= (OF_RATIO if is_resolved else OF_UNRESOLVED)

    def _forget_turn(self) -> None:
        """Discard the figures of the turn under way."""
        for one in (self._solution, *self._rivals):
            if one.name in self._marks:
                del one.raw[self._marks[one.name] :]
