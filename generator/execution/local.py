"""Run tasks on this machine, in forks of one process that imported torch.

`python -m generator.execution.local PARENT DESCRIPTOR MODULE` is that process, the server: it
reads requests from its link, and sends each task's beginning and outcome, then `end`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from generator.execution.child import Event, Link, by_status
from generator.execution.collecting import uncollected
from generator.execution.forks import Forks
from generator.execution.limits import adopt_orphans, die_with_parent
from generator.execution.outcome import CRASHED, Folder, Outcome, Task
from generator.execution.processes import safe_environment, start_python
from generator.execution.sandbox.paths import added_paths


class Cancelled(Exception):
    """Raised where another thread ended a run."""


_LEAVING_SECONDS = 10.0
# after this many servers that ended before a task began, no other one is started
_STARTS = 2


class LocalExecutor:
    """Tasks side by side, in forks of a server process that imports torch once.

    Tasks get what programs need of the caller's environment, never a token; of
    PYTHONPATH all if they import modules from the folder that `imports` names, else
    installed ones. `stays` keeps the server for the next run, and forks that have tasks
    left of theirs. `sharing` is how many processes share the machine's memory. Tasks that
    keep freed memory better do without `large_pages`: glibc finds no room for those in it.
    """

    def __init__(
        self,
        jobs: int,
        *,
        imports: str = "",
        stays: bool = False,
        sharing: int = 0,
        large_pages: bool = True,
    ) -> None:
        self._jobs = jobs
        self._imports = imports
        self._stays = stays
        self._sharing = sharing or jobs
        self._large_pages = large_pages
        self._server: subprocess.Popen[bytes] | None = None
        self._is_cancelled = False

    def begin(self, module: str) -> None:
        """Start the server before there are tasks: it imports torch and a module meanwhile.

        One whose tasks import from a folder waits until that is known.
        """
        if not self._imports and self._server is None:
            self._server = self._start("", module)

    def run(
        self,
        tasks: Sequence[Task],
        folders: Mapping[str, Folder],
        *,
        timeout: float,
        per_worker: int = 1,
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield the place of each task and its outcome, in the order in which they end.

        Where there are fewer tasks than jobs, each may use as many processes as are left
        to it. Where the server dies, another one goes on. A task that was under way then
        runs again, alone, and is at fault if the server dies again. Raises Cancelled where
        another thread calls `cancel`.
        """
        named = {name: str(folder.path.resolve()) for name, folder in folders.items()}
        lanes = max(self._jobs // max(len(tasks), 1), 1)
        named_values = {"lanes": lanes, "sharing": self._sharing, **named}
        imports = named.get(self._imports, "")
        left, suspects, idle = set(range(len(tasks))), set[int](), 0
        try:
            while left or suspects:
                alone = not left
                places = [min(suspects)] if alone else sorted(left)
                request = {
                    "event": "run",
                    "forks": [min(self._jobs, len(places)), timeout, per_worker],
                    "stays": self._stays,
                    "tasks": [
                        (tasks[place].work, {**tasks[place].arguments, **named_values})
                        for place in places
                    ],
                }
                begun: set[int] = set()
                for event in self._events(request, imports):
                    place = places[event["place"]]
                    if event["event"] == "begun":
                        begun.add(place)
                        continue
                    for group in (begun, left, suspects):
                        group.discard(place)
                    yield place, Outcome(**event["outcome"])
                if self._is_cancelled:
                    raise Cancelled
                if self._server is not None:
                    continue
                idle += not begun
                # where none begins, none can: torch can't be imported
                lost = left | suspects if idle == _STARTS else begun if alone else set()
                for place in sorted(lost):
                    why = f"the worker ended {self._ending}"
                    yield place, Outcome(CRASHED, why=why)
                suspects = (suspects | begun) - lost
                left -= begun | lost
        except BaseException:
            self.close()
            raise
        if not self._stays:
            self.close()

    def close(self) -> None:
        """End the server, and with it its forks."""
        server, self._server = self._server, None
        if server is not None:
            server.kill()
            server.wait()
            self._link.close()

    def cancel(self) -> None:
        """End the run under way, of another thread, and every later one."""
        self._is_cancelled = True
        server = self._server
        if server is not None:
            server.kill()

    def _events(self, request: Event, imports: str) -> Iterator[Event]:
        """Yield the server's events of a request; without a server left, it died."""
        server = self._server = self._server or self._start(imports)
        if self._is_cancelled:
            server.kill()
        with suppress(BrokenPipeError):
            self._link.send(request)
            while (event := self._link.receive()) is not None:
                if event["event"] == "end":
                    return
                yield event
        # it is about to be gone, or was killed: before it is ended here
        with suppress(subprocess.TimeoutExpired):
            server.wait(_LEAVING_SECONDS)
        self.close()
        self._ending = by_status(server.returncode)

    def _start(self, imports: str, module: str = "") -> subprocess.Popen[bytes]:
        ours = [imports, str(Path(__file__).parents[2])]
        passed = safe_environment(paths=ours)
        if not imports:
            # op_types may be those of a distribution that pip installed into a folder
            added = added_paths(os.environ.get("PYTHONPATH", ""))
            passed["PYTHONPATH"] = os.pathsep.join([*ours[1:], *added])
            # a process a core: threads would only be in each other's way; a task that is
            # alone has more of them, which wait without the CPU
            passed |= {
                "OMP_NUM_THREADS": "1",
                "MKL_NUM_THREADS": "1",
                "OMP_WAIT_POLICY": "passive",
            }
        here, there = socket.socketpair()
        self._link, descriptor = Link(here), str(there.fileno())
        with there:
            return start_python(
                ["-m", __name__, str(os.getpid()), descriptor, module],
                environment={
                    # glibc keeps freed memory: tensors of a reference come and go;
                    # large ones are of large pages
                    "THP_MEM_ALLOC_ENABLE": str(int(self._large_pages)),
                    "MALLOC_TRIM_THRESHOLD_": str(2**30),
                    "MALLOC_MMAP_THRESHOLD_": str(2**25),
                    **passed,
                    "PYTHONHASHSEED": "0",
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
                # Ctrl-C is for the command: it ends the server
                start_new_session=True,
            )


def serve(parent: int, descriptor: int, module: str) -> None:
    """Serve the requests of a link until it ends; of a module, where one is named."""
    # first: importing torch takes seconds, in which the command may go
    die_with_parent(parent)
    adopt_orphans()
    # a fork closes it, and finds torch loaded
    link = Link(socket.socket(fileno=descriptor))
    with uncollected():
        import_module("torch")
        if module:
            # while the command reads what there is to do; a fork says why it can't be
            with suppress(Exception):
                import_module(module)

    def call(task: tuple[str, Any], link_of_task: Link) -> Any:
        work, arguments = task
        module, _, name = work.partition(":")
        return getattr(import_module(module), name)(arguments, link_of_task)

    def begin(place: int) -> None:
        link.send({"event": "begun", "place": place})

    forks = Forks(1, 0.0)
    while (request := link.receive()) is not None:
        tasks = request["tasks"]
        for work in {work for work, _ in tasks}:
            # so is this; a fork says why it can't be
            with suppress(Exception):
                import_module(work.partition(":")[0])
        jobs, timeout, per_fork = request["forks"]
        stays = request["stays"]
        how = Forks(jobs, timeout, per_fork, on_start=begin, stay=stays)
        if how != forks:
            forks.close()
            forks = how
        for place, outcome in forks.run(call, tasks):
            link.send({"event": "outcome", "place": place, "outcome": asdict(outcome)})
        link.send({"event": "end"})


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
