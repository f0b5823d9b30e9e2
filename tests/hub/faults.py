"""Say what goes wrong in the loopback Hub, where, and how often."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Does(Enum):
    """Name what a fault does to a request."""

    CUT_UPLOAD = "read half of what is sent, then hang up; nothing happens"
    CUT_ANSWER = "do what is asked, send half of the answer, then hang up"
    DROP_ANSWER = "do what is asked, then hang up without an answer"
    STATUS = "answer with an error; nothing happens"
    SLOW = "do what is asked, and answer slowly"
    WRONG_BYTES = "answer with one byte changed"


@dataclass(frozen=True)
class Fault:
    """Strike requests of a route (see server.ROUTES; * is any of them).

    It strikes from the nth request on, `times` times (None: for ever), and each time
    with the probability given. `meddle` runs before the request is looked at: somebody
    else's commit. Chance depends on the seed, the path and how often it was asked for,
    never on the order in which threads come. `path` limits it to paths that contain it.
    """

    route: str
    does: Does | None
    nth: int = 1
    times: int | None = 1
    probability: float = 1.0
    seed: int = 0
    path: str = ""
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "injected"
    seconds: float = 0.01
    meddle: Callable[[], object] | None = None


class Faults:
    """Pick the fault of each request; safe for threads."""

    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self._lock = threading.Lock()
        self.struck: Counter[str] = Counter()
        self.use(*faults)

    def use(self, *faults: Fault) -> None:
        """Replace all faults, and start counting anew."""
        with self._lock:
            self._faults = list(faults)
            self._seen: Counter[int] = Counter()
            self._done: Counter[int] = Counter()
            self._asked: Counter[tuple[int, str]] = Counter()

    def pick(self, route: str, path: str) -> Fault | None:
        """Return the first fault that strikes this request, or None."""
        with self._lock:
            for at, fault in enumerate(self._faults):
                if fault.route not in (route, "*") or fault.path not in path:
                    continue
                self._seen[at] += 1
                self._asked[at, path] += 1
                if self._seen[at] < fault.nth:
                    continue
                if fault.times is not None and self._done[at] >= fault.times:
                    continue
                key = f"{fault.seed}:{route}:{path}:{self._asked[at, path]}"
                if random.Random(key).random() >= fault.probability:
                    continue
                self._done[at] += 1
                self.struck[route] += 1
                return fault
        return None


def too_many(route: str, *, after: int = 1, **more: int) -> Fault:
    """Return the Hub's 429 with its Retry-After, in seconds."""
    headers = {"Retry-After": str(after)}
    return Fault(route, Does.STATUS, status=429, headers=headers, **more)  # type: ignore[arg-type]


def refuse(route: str, status: int, message: str, code: str = "") -> Fault:
    """Return an error that stays; `code` is the Hub's X-Error-Code."""
    headers = {"X-Error-Code": code} if code else {}
    return Fault(
        route, Does.STATUS, times=None, status=status, message=message, headers=headers
    )
