"""Measure a call on the GPU by events, in the judge's process or in a solution's.

In the sandbox no package of ours is visible: this module imports none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_FLUSH_BYTES = 512 << 20
_LAUNCHES = 16

Frame = dict[str, Any]


class Clock:
    """Measure a call on the GPU by events, with a cold L2 cache before each call."""

    def __init__(self, torch: Any) -> None:
        self._no_grad, self._synchronize = torch.no_grad, torch.cuda.synchronize
        self._event, self._elapsed = torch.cuda.Event, torch.cuda.Event.elapsed_time
        self._record, self._zero = torch.cuda.Event.record, torch.Tensor.zero_
        size = 4 * torch.cuda.get_device_properties(0).L2_cache_size or _FLUSH_BYTES
        self._cache = torch.empty(size, dtype=torch.uint8, device="cuda")
        self._little = self._cache[:1024]

    def around(self, call: Callable[[], Any] | None) -> tuple[Frame, Any]:
        """Return the times of a call and what it returned; None calls nothing.

        `milliseconds` is from before the call to the end of what it left on its stream,
        `rest` from there until the device is idle, whatever stream is still busy.
        """
        first, last, idle = (self._event(enable_timing=True) for _ in range(3))
        self._zero(self._cache)
        for _ in range(_LAUNCHES):
            # a process that waited launches slowly at first
            self._zero(self._little)
        # nothing may run before the first event, on any stream
        self._synchronize()
        with self._no_grad():
            self._record(first)
            returned = call() if call is not None else None
            self._record(last)
        self._synchronize()
        self._record(idle)
        self._synchronize()
        times = {
            "milliseconds": float(self._elapsed(first, last)),
            "rest": float(self._elapsed(last, idle)),
        }
        return times, returned
