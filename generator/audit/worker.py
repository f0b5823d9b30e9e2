"""The process that runs references: torch is loaded once, every risk in its children.

`python -m generator.audit.worker` reads a line of JSON for each definition and writes
lines of JSON, events, to stdout. For a definition it forks a child that makes inputs
and asks the oracle; that one forks another which runs the mutants, and replaces it
where a mutant hangs or takes it down: what was made once is there at once again.
Where the task names seeds, the child runs the reference itself with these instead.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from generator.audit.job import (
    EQUIVALENCE_SECONDS,
    Job,
    ended,
    prepare,
    timed_out,
)
from generator.audit.limits import (
    MORE_BYTES,
    be_quiet,
    die_with_parent,
    limit_memory,
)
from generator.audit.result import MutantResult
from generator.audit.seeds_job import tell_alarms
from generator.discover import DatasetFile
from generator.load import load_file
from generator.support.memory import needed_bytes
from generator.wording import one_line

Event = dict[str, Any]
# on a busy machine a process gets a part of the time: seconds of a clock for one of CPU
_PATIENCE = 5.0
_GRACE_SECONDS = 10.0
_PREPARING_SECONDS = 300.0


def main() -> int:
    """Audit the definitions that stdin names until it ends."""
    import torch

    die_with_parent()
    torch.set_num_threads(1)
    answers = os.dup(1)
    for line in sys.stdin:
        for event in _of_definition(json.loads(line)):
            _send(answers, event)
    return 0


def _of_definition(task: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the events of one definition; the last one is `done` or `broken`."""
    begun = time.monotonic()
    longest = _PREPARING_SECONDS
    work = _ask_seeds if "seeds" in task else _audit
    with closing(_Child(lambda write: work(task, write))) as child:
        while True:
            event = child.event(longest)
            if event is None:
                yield {"event": "broken", "why": child.how_it_ended()}
                return
            if event["event"] == "ready":
                longest = event["longest"]
            if event["event"] == "done":
                event["seconds"] = round(time.monotonic() - begun, 2)
            yield event
            if event["event"] in ("done", "broken"):
                return


def _audit(task: Mapping[str, Any], write: int) -> None:
    """Prepare a definition and see its mutants through, in a process of its own."""
    be_quiet()
    try:
        job = _prepared(task)
    except BaseException as error:  # noqa: BLE001
        _send(write, _broken(error))
        return
    waiting = _PATIENCE * job.bench.longest + _GRACE_SECONDS
    checking = _PATIENCE * EQUIVALENCE_SECONDS + _GRACE_SECONDS
    _send(
        write,
        {
            "event": "ready",
            "mutants": len(job.planned),
            "reduced": dict(job.axes),
            "left_out": [
                f"{test} in case {case}: {why}"
                for (test, case), why in job.bench.left_out.items()
            ],
            "recorded_cases": sum(stand.is_recorded for stand in job.bench.stands),
            "longest": waiting + checking + _PREPARING_SECONDS,
        },
    )
    place = 0
    while place < len(job.planned):
        place = _some(job, place, write, waiting, checking)
    _send(write, {"event": "done"})


def _ask_seeds(task: Mapping[str, Any], write: int) -> None:
    """Ask the tests about a definition's reference, in a process of its own."""
    be_quiet()
    try:
        tell_alarms(task, lambda event: _send(write, event))
    except BaseException as error:  # noqa: BLE001
        _send(write, _broken(error))
        return
    _send(write, {"event": "done"})


def _broken(error: BaseException) -> Event:
    lines = str(error).strip().splitlines() or [""]
    why = one_line(f"{type(error).__name__}: {lines[0]}", 200)
    return {"event": "broken", "why": why}


def _some(job: Job, first: int, write: int, waiting: float, checking: float) -> int:
    """Run mutants in a child until all are done or one breaks it; return the next."""
    place, seconds = first, waiting
    with closing(_Child(lambda own: _run(job, first, own))) as child:
        while place < len(job.planned):
            event = child.event(seconds)
            if event is not None and event["event"] == "passed":
                seconds = checking
                continue
            if event is None:
                planned = job.planned[place].result
                how = child.how_it_ended()
                result = timed_out(planned, how) if child.hung else ended(planned, how)
                _send(write, _told(result))
                return place + 1
            _send(write, event)
            place, seconds = place + 1, waiting
    return place


def _run(job: Job, first: int, write: int) -> None:
    definition = job.bench.cls.definition()
    most = max(
        (
            needed_bytes(definition, stand.case, job.bench.cls.peak_bytes)
            for stand in job.bench.stands
        ),
        default=0,
    )
    limit_memory(most + MORE_BYTES)
    for place in range(first, len(job.planned)):
        result = job.audit(place, lambda: _send(write, {"event": "passed"}))
        _send(write, _told(result))


def _prepared(task: Mapping[str, Any]) -> Job:
    definition, problems = load_file(Path(task["root"]), DatasetFile(**task["file"]))
    if definition is None:
        raise ValueError(str(problems[0]) if problems else "it can't be read")
    recordings = Path(task["recordings"])
    return prepare(definition, recordings, task["tolerance"])


def _told(result: MutantResult) -> Event:
    return {"event": "mutant", "result": asdict(result)}


def _send(descriptor: int, event: Event) -> None:
    left = json.dumps(event).encode() + b"\n"
    while left:
        left = left[os.write(descriptor, left) :]


class _Child:
    """Fork a child that sends events; the child never returns to its parent's code."""

    def __init__(self, work: Callable[[int], None]) -> None:
        self._read, write = os.pipe()
        self.hung = False
        self._text = b""
        self._status: int | None = None
        self._pid = os.fork()
        if self._pid:
            os.close(write)
            return
        # the child: whatever happens, it never returns to the code of its parent
        try:
            os.close(self._read)
            os.setpgid(0, 0)
            die_with_parent()
            work(write)
            os._exit(0)
        except BaseException:  # noqa: BLE001
            os._exit(1)
        finally:
            os._exit(1)

    def close(self) -> None:
        """End the child and all that it began."""
        self._end()
        os.close(self._read)

    def event(self, seconds: float) -> Event | None:
        """Return the next event; None where the child is gone, or silent that long."""
        until = time.monotonic() + seconds
        while b"\n" not in self._text:
            left = until - time.monotonic()
            ready = select.select([self._read], [], [], max(left, 0.0))[0]
            if not ready:
                self.hung = True
                return None
            more = os.read(self._read, 1 << 16)
            if not more:
                return None
            self._text += more
        line, self._text = self._text.split(b"\n", 1)
        try:
            event = json.loads(line)
            return event if isinstance(event["event"], str) else None
        except (ValueError, KeyError, TypeError):
            # something else than an audit wrote to the pipe
            return None

    def how_it_ended(self) -> str:
        """Return why there are no more events: `ended its process with status 3`."""
        if self.hung:
            return "did not answer any more"
        status = self._end()
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            return f"ended its process by {name}"
        return f"ended its process with status {os.WEXITSTATUS(status)}"

    def _end(self) -> int:
        if self._status is None:
            if not self.hung:
                # one that closed its pipe is about to be gone: ask how, but not for long
                for _ in range(50):
                    pid, status = os.waitpid(self._pid, os.WNOHANG)
                    if pid:
                        self._status = status
                        break
                    time.sleep(0.01)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            if self._status is None:
                self._status = os.waitpid(self._pid, 0)[1]
        return self._status


if __name__ == "__main__":
    sys.exit(main())
