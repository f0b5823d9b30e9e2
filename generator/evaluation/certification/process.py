"""The judge's end of a production kernel's process: a session, as of a solution."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import generator
from generator.evaluation.channel import pair
from generator.evaluation.keeper import LEAVING_SECONDS, Keeper
from generator.evaluation.session import Allowed, Session
from generator.evaluation.worker import resident_in
from generator.execution.processes import safe_environment, start_python

_MODULE = "generator.evaluation.certification.kernel"


class OwnKeeper(Keeper):
    """The keeper of a process of this software, whose threads are its own."""

    def __init__(self, process: subprocess.Popen[Any]) -> None:
        self._process = process
        self._is_stopped = False

    def stop(self) -> None:
        """Stop the process."""
        if not self._is_stopped:
            self._is_stopped = True
            self._process.send_signal(signal.SIGSTOP)

    def check(self) -> None:
        """Do nothing: it is trusted not to go on."""

    def go(self) -> None:
        """Let it continue."""
        if self._is_stopped:
            self._is_stopped = False
            self._process.send_signal(signal.SIGCONT)

    def ending(self, *, within: float = LEAVING_SECONDS) -> str:
        """Return how it ended; empty where it lives on for so long."""
        with suppress(subprocess.TimeoutExpired):
            return f"its process ended with {self._process.wait(within)}"
        return ""

    def used(self) -> dict[str, int]:
        """Return the bytes, threads and descriptors of the process."""
        folder = Path(f"/proc/{self._process.pid}")
        _, resident, shared, *_ = map(int, (folder / "statm").read_text().split())
        return {
            "bytes": (resident - shared) * os.sysconf("SC_PAGESIZE"),
            "threads": len(os.listdir(folder / "task")),
            "descriptors": len(os.listdir(folder / "fd")),
        }

    def peak(self) -> dict[str, int]:
        """Return the resident bytes of the process, now and at most since the last time."""
        resident, peak = resident_in(f"/proc/{self._process.pid}")
        return {"resident": resident, "peak": peak, "files": 0}

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def kernel_session(how: Mapping[str, Any], device: str, allowed: Allowed) -> Session:
    """Return a session with a kernel's process, which has imported and compiled it.

    `how` has `root`, `file`, `provider` and `kernel`. Raises Refused.
    """
    asks, asked = pair()
    above = str(Path(generator.__file__).resolve().parents[1])
    with asked:
        process = start_python(
            ["-m", _MODULE, str(asked.fileno()), device],
            environment=safe_environment(paths=[above]),
            pass_fds=[asked.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    keeper = OwnKeeper(process)
    try:
        session = Session(asks, keeper, device, allowed, lambda: None)
        # an import may compile, and so may the first call
        session.ask({"build": dict(how)}, builds=True)
    except BaseException:
        asks.close()
        keeper.close()
        raise
    return session
