"""A worker process: it imports torch once, and runs each definition's code in a child.

`python -m generator.execution.worker` reads a line of JSON for each definition and writes
lines of JSON, events, to stdout. For each definition it forks a child that calls the
module that the line names. How the child ended is an event too.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from generator.execution.child import Child, Link, keep_to_oneself
from generator.execution.limits import (
    adopt_orphans,
    be_quiet,
    die_with_parent,
    end_orphans,
)
from generator.execution.task import CannotRun, Event
from generator.problems.messages import one_line


def main() -> int:
    """Run the tasks on stdin until it ends."""
    # first: importing torch takes seconds, in which the command may go
    die_with_parent()
    if _is_left_alone():
        return 1
    adopt_orphans()
    import torch

    torch.set_num_threads(1)
    answers = os.fdopen(keep_to_oneself(os.dup(1)), "w", encoding="utf-8")
    for line in sys.stdin:
        for event in _of_definition(json.loads(line)):
            answers.write(json.dumps(event) + "\n")
            answers.flush()
    return 0


def _is_left_alone() -> bool:
    """Return whether the other end of stdin is closed: the command is gone."""
    poll = select.poll()
    poll.register(0, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def _of_definition(arguments: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the events of one definition; the last one is `done` or `broken`."""
    begun = time.monotonic()
    longest = arguments["timeout"]
    # in this process, so that the next definition finds it loaded
    answer = importlib.import_module(arguments["work"]).answer

    def work(link: Link) -> None:
        be_quiet()
        try:
            answer(arguments, link)
        except CannotRun as error:
            link.send({"event": "broken", "why": str(error)})
            return
        except BaseException as error:  # noqa: BLE001
            link.send({"event": "broken", "why": _short(error)})
            return
        link.send({"event": "done"})

    with closing(Child(work)) as child:
        while True:
            event = child.link.receive(longest)
            if event is None:
                event = {"event": "broken", "why": child.how_it_ended()}
            # a child that knows its work better sets another timeout from then on
            longest = event.get("longest", longest)
            if event["event"] in ("done", "broken"):
                break
            yield event
    # before the last event: its reader may end this process at once
    end_orphans()
    if event["event"] == "done":
        event["seconds"] = round(time.monotonic() - begun, 2)
    yield event


def _short(error: BaseException) -> str:
    """Return a kind of error and the first line of what it says."""
    lines = str(error).strip().splitlines() or [""]
    return one_line(f"{type(error).__name__}: {lines[0]}", 200)


if __name__ == "__main__":
    sys.exit(main())
