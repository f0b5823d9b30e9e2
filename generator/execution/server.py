"""The server process of a LocalExecutor: it imports torch once, and forks.

`python -m generator.execution.server PARENT` reads a request, a line of JSON, and writes events
to stdout, lines of JSON: each task's beginning and outcome, then `end`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib import import_module
from typing import Any

from generator.execution.child import Event, Link, keep_to_oneself
from generator.execution.forks import Forks
from generator.execution.limits import adopt_orphans, be_quiet, die_with_parent


def main() -> None:
    """Serve requests on stdin until it ends."""
    # first: importing torch takes seconds, in which the command may go
    die_with_parent(int(sys.argv[1]))
    adopt_orphans()
    requests = os.fdopen(keep_to_oneself(os.dup(0)), encoding="utf-8")
    answers = os.fdopen(keep_to_oneself(os.dup(1)), "w", encoding="utf-8")
    be_quiet()
    # each fork finds it loaded
    import_module("torch")

    def tell(event: Event) -> None:
        answers.write(json.dumps(event) + "\n")
        answers.flush()

    for line in requests:
        request = json.loads(line)
        tasks, machine = request["tasks"], request["machine"]
        for name in {task["work"] for task in tasks}:
            # so is this; a fork says why it can't be
            with suppress(Exception):
                import_module(name.partition(":")[0])

        forks = Forks(
            request["jobs"],
            request["timeout"],
            request["per_fork"],
            on_start=lambda place: tell({"event": "begun", "place": place}),
        )
        for place, outcome in forks.run(partial(call, tasks, machine), len(tasks)):
            tell({"event": "outcome", "place": place, "outcome": asdict(outcome)})
        tell({"event": "end"})


def call(
    tasks: Sequence[Mapping[str, Any]],
    machine: Mapping[str, Any],
    place: int,
    link: Link,
) -> Any:
    """Return the value of a task; `machine` are the arguments that depend on it."""
    task = tasks[place]
    module, _, name = task["work"].partition(":")
    function = getattr(import_module(module), name)
    return function({**task["arguments"], **machine}, link)


if __name__ == "__main__":
    main()
