"""One timed call: who holds the device, when the values come, when the outputs are read.

On a GPU contexts of different processes take turns: while one has work, no kernel of
another runs (time slices of about 2 ms apart). That is the clock's foundation:

1. The judge's kernels hold the device for 0.4 ms, or as long as the callee's launches
   take, up to 1.5 ms. Meanwhile the call is revealed, and the callee launches all that it wants.
   Nothing of it runs, and there is nothing to compute: what the last call left was written
   over before this callee went on, and nobody had the values of this call before.
2. The last of these kernels write the values and evict them from the L2. Then the clock
   starts. The device turns to what the callee launched.
3. At the answer the judge's copy of the outputs is queued. The device turns to it when
   the callee's work is done, whatever the callee said: the clock stops when it is copied.

A call that does nothing takes two changes of context, which are subtracted. So an early
answer, a late kernel, a thread and another process gain nothing: what they do on the
device before the copy counts, and after it is too late.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from generator.evaluation.arena import Layout, Place, poison
from generator.evaluation.clock.callee import WAITS
from generator.evaluation.clock.outputs import in_arena
from generator.evaluation.clock.page import END, Page
from generator.evaluation.clock.session_result import Untimed
from generator.evaluation.clock.shared_memory import (
    SharedMemory,
    create,
    reset_persisting_l2,
)

Copies = list[tuple[torch.Tensor, torch.Tensor]]
_cuda: Any = torch.cuda
_PATTERN = 0xA5
# in which launches go ahead; with the writing behind it, it ends before a time slice of
# 2.4 ms does: after that the callee's work would run on some of the values
HOLD_MS, _LONGEST_HOLD_MS, _OWN_SLICE_MS = 0.4, 1.5, 2.2
_CYCLES_A_MS = 2_000_000
# the device turns to others when the judge has launched nothing for some microseconds: what
# is launched earlier runs before the callee's work. A change of context takes 140
_TURNS_SECONDS = 6e-5
_FLUSHED = 4
_SWITCH_SECONDS = 1e-4
_UNKNOWN_L2 = 128 << 20
SLICE_MS = 1.8
"""What a callee's work may take before the device turns to the judge regardless."""


@dataclass
class CalleeLink:
    """The judge's link to a callee.

    `go` and `stop` continue and stop its processes, `is_there` says whether it lives,
    `seconds` is how long a call may take. `arena` is where it may return outputs, `memory`
    where its arguments lie: None for the solution's.
    """

    page: Page
    go: Callable[[], None] = lambda: None
    stop: Callable[[], None] = lambda: None
    is_there: Callable[[], bool] = lambda: True
    seconds: float = 60.0
    arena: SharedMemory | None = None
    memory: SharedMemory | None = None
    number: int = 0

    def end(self) -> None:
        """Have the callee stop waiting for calls."""
        self.go()
        self.number += 1
        self.page.open(self.number, END)


@dataclass(frozen=True)
class CallTimes:
    """The times of one call, in milliseconds, and the callee's answer.

    On a GPU its own events measure all but `host`: no wait of the judge is in a figure.

    Attributes:
        raw: from the moment at which the values were there until the outputs were
            copied, changes of context included.
        host: from the reveal to the answer, as the judge sees both.
        held: how long the judge held the device before it wrote the values; longer where
            others came between.
        delayed: how long it took from letting the callee go on until the judge had the
            device. In less than a time slice no kernel of the callee can be there before
            the values and go on behind them.
        turning: the same from when the callee was ready: a process may choose its own
            time slice, but a kernel of it that is there costs a change of context.
        writing: how long it took from the first value to the clock's start, in which a
            turn of another context would work on the values before the clock starts.
        behind: how long after the judge's copy of the outputs was launched it was done.
            Longer than in an empty call where the callee had not done its work by then.
        after: how long after the clock's start the answer came. Who waits for a kernel can't
            answer before where processes take turns on the device.
        said: JSON of the callee.
        asked: how long the judge was to hold the device.
    """

    raw: float
    host: float
    held: float
    delayed: float
    turning: float
    writing: float
    behind: float
    after: float
    said: Any = field(repr=False)
    asked: float = HOLD_MS

    @property
    def raised(self) -> bool:
        """Return whether the callee says that it raised."""
        return isinstance(self.said, dict) and "raised" in self.said


class TimedCalls:
    """The memory of one workload's calls, on the judge's side.

    The solution and the kernels share one piece: equal works at other places are 0.3 µs
    apart. So what lies in it is never what the solution is yet to be called with: copies
    go on while its processes are stopped. The reference has memory of its own. `filled`
    are the numbers of the inputs that a call is to write to. Raises Untimed for values that
    take longer to write than the judge has the device.
    """

    def __init__(self, device: str, layout: Layout, filled: Sequence[int] = ()) -> None:
        self.device, self.layout, self.filled = device, layout, tuple(filled)
        self._cuda = device == "cuda"
        self._most_hold_ms = _LONGEST_HOLD_MS
        self.memory = self._called_on = create(device, layout.size)
        self._memories = [self.memory]
        self.staged = torch.full(
            (layout.size,), _PATTERN, dtype=torch.uint8, device=device
        )
        for place in layout.outputs:
            if "at" in place:
                poison(_tensor(self.staged, place))
        places = [p for p in layout.outputs if "at" in p]
        begin = min((p["at"] for p in places), default=layout.size)
        self._begin = 0 if filled else begin // 256 * 256
        self.taken = torch.empty_like(self.staged[self._begin :])
        self._protected = _between(
            [*places, *(layout.inputs[number] for number in filled)], layout.size
        )
        if self._cuda:
            l2 = torch.cuda.get_device_properties(0).L2_cache_size or _UNKNOWN_L2
            self._evicts = torch.empty(
                _FLUSHED * l2 // 8, dtype=torch.int64, device=device
            )
            self._started, self._slept, self._written, self._copied_out = (
                _cuda.Event(enable_timing=True) for _ in range(4)
            )
            self._fit_writing(self._writing_ms())

    def _fit_writing(self, writing_ms: float) -> None:
        """Leave as much time for launches as writing the values does. Raises Untimed."""
        left = _OWN_SLICE_MS - writing_ms
        if left < HOLD_MS:
            self.close()
            size = self.layout.size >> 20
            raise Untimed(
                f"its {size} MiB take {writing_ms:.1f} ms to write, more than a time slice "
                "of the GPU has beside the launches"
            )
        self._most_hold_ms = min(left, _LONGEST_HOLD_MS)

    def _writing_ms(self) -> float:
        """Return how long it takes to write values and to evict them, the median of three."""
        times = []
        for number in range(3):
            self._started.record()
            self._write()
            self._evicts.fill_(number)
            self._written.record()
            torch.cuda.synchronize()
            times.append(float(self._started.elapsed_time(self._written)))
        return statistics.median(times)

    def close(self) -> None:
        """Give the memory back."""
        for memory in self._memories:
            memory.close()

    def apart(self) -> SharedMemory:
        """Return memory for another one than the solution. Raises NoRoom."""
        self._memories.append(create(self.device, self.layout.size))
        return self._memories[-1]

    @property
    def writes(self) -> bool:
        """Return whether a call has a byte to write, so that the device turns to it."""
        return any(
            place.get("bytes")
            for place in (
                *self.layout.outputs,
                *(self.layout.inputs[number] for number in self.filled),
            )
        )

    def stage(self, inputs: Mapping[str, Any]) -> None:
        """Keep the values of the next calls, where no callee sees them."""
        for place, value in zip(self.layout.inputs, inputs.values(), strict=True):
            if "at" in place:
                _tensor(self.staged, place).copy_(value)

    def hold_for(self, launches_ms: float) -> float:
        """Return how long the device is held for launches that take that long.

        At least the usual time, at most what fits into a time slice.
        """
        return min(max(launches_ms, HOLD_MS), self._most_hold_ms)

    def call(
        self, link: CalleeLink, which: int, seed: int, hold_ms: float = HOLD_MS
    ) -> CallTimes:
        """Have a call made on the values that are staged.

        `which` is the number of a function, 0 for none, with `callee.WAITS` where the
        callee waits for the device before it answers. Raises Silent.
        """
        page, until = link.page, time.monotonic() + link.seconds
        link.number += 1
        number = link.number
        self._called_on = link.memory or self.memory
        self._wipe()
        clock, said, answered, written = time.perf_counter, None, 0.0, 0.0
        begun = started = asked = clock()
        link.go()
        page.open(number, seed + 1)
        page.wait_ready(number, until, link.is_there)
        copies: Copies = []
        if self._cuda:
            # whatever of these the device is needed for waits for a kernel that is there
            asked = clock()
            torch.cuda.synchronize()
            reset_persisting_l2()
            self._started.record()
            _cuda._sleep(round(hold_ms * _CYCLES_A_MS))
            while not self._started.query():
                pass
            started = clock()
            self._slept.record()
            self._write()
            self._evicts.fill_(number)
            self._written.record()
            page.reveal(number, which)
            revealed = clock()
            while not self._written.query():
                if not answered and page.is_answered(number):
                    answered, said = clock(), page.text()
                    # while the device is held: what this takes later delays the copy
                    copies = self._copies(link, said)
            written = clock()
        else:
            self._write()
            page.reveal(number, which)
            revealed = clock()
        if not answered:
            page.wait_answered(number, until, link.is_there)
            answered, said = clock(), page.text()
            copies = self._copies(link, said)
        # of a late one the last launch may be a moment old: the device has to turn first
        queued = written if which & WAITS else max(written, answered)
        while self._cuda and clock() - queued < _TURNS_SECONDS:
            pass
        launched = clock()
        _copy(copies)
        if self._cuda:
            self._copied_out.record()
            torch.cuda.synchronize()
            raw = float(self._written.elapsed_time(self._copied_out))
            held = float(self._started.elapsed_time(self._slept))
            writing = float(self._slept.elapsed_time(self._written))
        else:
            raw, held, writing = 1e3 * (clock() - revealed), 0.0, 0.0
        link.stop()
        host = 1e3 * (answered - revealed)
        delayed, turning = 1e3 * (started - begun), 1e3 * (started - asked)
        behind, after = raw - 1e3 * (launched - written), 1e3 * (answered - written)
        parts = held, delayed, turning, writing, behind, after
        return CallTimes(raw, host, *parts, said, hold_ms)

    def outputs(self) -> list[Any]:
        """Return copies of what the last call wrote: None for outputs without a place."""
        return [self._copied(place) for place in self.layout.outputs]

    def input(self, number: int) -> torch.Tensor:
        """Return a copy of an input that the last call filled."""
        value = self._copied(self.layout.inputs[number])
        assert value is not None
        return value

    def changed(self) -> bool:
        """Return whether something was written that is no output: the callee is stopped."""
        # between places of any length the bytes are not aligned
        return not all(
            torch.equal(self._called_on.bytes[a:b], self.staged[a:b])
            if b - a < 4096
            else torch.equal(
                _words(self._called_on.bytes, a, b), _words(self.staged, a, b)
            )
            for a, b in self._protected
        )

    def _wipe(self) -> None:
        """Leave nothing of the last call's values in the memory."""
        self._called_on.bytes.fill_(_PATTERN)
        if self._cuda:
            torch.cuda.synchronize()

    def _write(self) -> None:
        """Write values, poison and pattern by a kernel: a copy engine would not hold."""
        size = self.layout.size
        target = self._called_on.bytes[:size].view(torch.int64)
        torch.bitwise_xor(self.staged.view(torch.int64), 0, out=target)

    def _copies(self, link: CalleeLink, said: Any) -> Copies:
        """Return what is to be copied where: outputs in their places, and in the arena."""
        copies: Copies = []
        target = self.taken.view(torch.int64)
        end = self._begin + self.taken.numel()
        source = self._called_on.bytes[self._begin : end].view(torch.int64)
        places = in_arena(said, self.layout, link.arena)
        declared = sum("at" in place for place in self.layout.outputs)
        if self.filled or len(places) < declared:
            copies.append((source, target))
        for place, at in places:
            assert link.arena is not None
            size = place["bytes"]
            there = link.arena.bytes[at : at + size]
            here = self.taken[place["at"] - self._begin :][:size]
            if at % 8 == 0 and size % 8 == 0:
                here, there = here.view(torch.int64), there.view(torch.int64)
            copies.append((there, here))
        return copies

    def _copied(self, place: Place) -> torch.Tensor | None:
        if "at" not in place:
            return None
        moved = {**place, "at": place["at"] - self._begin}
        return _tensor(self.taken, moved).clone()


@contextmanager
def switching() -> Iterator[None]:
    """Have Python's other threads give way soon: each waits for the lock of all."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def _copy(copies: Copies) -> None:
    for source, target in copies:
        torch.bitwise_xor(source, 0, out=target)


def _tensor(flat: torch.Tensor, place: Place) -> torch.Tensor:
    bytes_ = flat[place["at"] : place["at"] + place["bytes"]]
    return bytes_.view(getattr(torch, place["dtype"])).view(place["shape"])


def _words(flat: torch.Tensor, begin: int, end: int) -> torch.Tensor:
    begin, end = -(-begin // 8) * 8, end // 8 * 8
    return flat[begin:end].view(torch.int64)


def _between(places: Sequence[Place], size: int) -> list[tuple[int, int]]:
    """Return the ranges beside places, in order."""
    spans, begin = [], 0
    for place in sorted(places, key=lambda place: int(place["at"])):
        spans.append((begin, place["at"]))
        begin = place["at"] + place["bytes"]
    return [(a, b) for a, b in (*spans, (begin, size)) if a < b]
