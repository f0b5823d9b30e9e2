"""Run tasks on this machine, in forks of one process that imported torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from generator.execution.child import Event, by_status
from generator.execution.outcome import CRASHED, Folder, Outcome, Task
from generator.execution.sandbox.paths import added_paths

_LEAVING_SECONDS = 10.0
# so many servers may end before a task begins
_STARTS = 2
# of the caller's environment; a dataset's code must not see the rest
_PASSED_ON = [
    "PATH",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
]


class LocalExecutor:
    """Run tasks side by side in forks of a server process, which imports torch once.

    Tasks get only what programs need of the caller's environment, unless they import
    modules from the folder that `imports` names: then all of it. `stays` keeps the
    server for the next run. `sharing` is how many processes share the machine's memory.
    """

    def __init__(
        self, jobs: int, *, imports: str = "", stays: bool = False, sharing: int = 0
    ) -> None:
        self._jobs = jobs
        self._imports = imports
        self._stays = stays
        self._sharing = sharing or jobs
        self._server: subprocess.Popen[str] | None = None

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
        runs again, alone, and is at fault if the server dies again.
        """
        named = {name: str(folder.path.resolve()) for name, folder in folders.items()}
        machine = {
            "lanes": max(self._jobs // max(len(tasks), 1), 1),
            "sharing": self._sharing,
            **named,
        }
        request: dict[str, Any] = {"timeout": timeout, "per_fork": per_worker}
        imports = named.get(self._imports, "")
        left, suspects, idle = set(range(len(tasks))), set[int](), 0
        try:
            while left or suspects:
                alone = not left
                places = [min(suspects)] if alone else sorted(left)
                request["jobs"] = min(self._jobs, len(places))
                asked = [asdict(tasks[place]) for place in places]
                request |= {"machine": machine, "tasks": asked}
                begun: set[int] = set()
                for event in self._events(request, imports):
                    place = places[event["place"]]
                    if event["event"] == "begun":
                        begun.add(place)
                        continue
                    for group in (begun, left, suspects):
                        group.discard(place)
                    yield place, Outcome(**event["outcome"])
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
            # closes its pipes; what was buffered can't be sent any more
            server.communicate()

    def _events(self, request: Mapping[str, Any], imports: str) -> Iterator[Event]:
        """Yield the server's events of a request; without a server left, it died."""
        server = self._server = self._server or self._start(imports)
        assert server.stdin is not None
        assert server.stdout is not None
        with suppress(BrokenPipeError):
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            for line in server.stdout:
                event = json.loads(line)
                if event["event"] == "end":
                    return
                yield event
        # it is about to be gone, or was killed: before it is ended here
        with suppress(subprocess.TimeoutExpired):
            server.wait(_LEAVING_SECONDS)
        self.close()
        self._ending = by_status(server.returncode)

    def _start(self, imports: str) -> subprocess.Popen[str]:
        given = os.environ.get("PYTHONPATH", "")
        if imports:
            added, passed = given.split(os.pathsep), dict(os.environ)
        else:
            # op_types may be those of a distribution that pip installed into a folder
            added = added_paths(given)
            passed = {n: os.environ[n] for n in _PASSED_ON if n in os.environ}
            # a process a core: threads would only be in each other's way
            passed |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        paths = [imports, str(Path(__file__).parents[2]), *added]
        return subprocess.Popen(
            [sys.executable, "-m", "generator.execution.server", str(os.getpid())],
            env={
                # glibc keeps freed memory: tensors of a reference come and go
                "MALLOC_TRIM_THRESHOLD_": str(2**30),
                "MALLOC_MMAP_THRESHOLD_": str(2**25),
                **passed,
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                "PYTHONHASHSEED": "0",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # Ctrl-C is for the command: it ends the server
            start_new_session=True,
        )
