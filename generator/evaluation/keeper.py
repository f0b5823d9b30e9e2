"""The judge's link to the first process of a solution's namespace, which runs none of it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from generator.evaluation.channel import received
from generator.evaluation.frames import Frame, Garbled, send
from generator.evaluation.verdict import REWARD_HACK, RUNTIME_ERROR, Refused
from generator.problems.messages import one_line

_SECONDS = 60.0
LEAVING_SECONDS = 1.0
"""What a process that is about to end may take."""
State = list[Any]


class Keeper:
    """The processes of one solution, which it stops, continues and ends.

    `why_lost` says why there is no keeper any more. Whatever asks it raises Refused
    where it is gone: once it began, only what the solution did can end it.
    """

    def __init__(self, channel: socket.socket, why_lost: Callable[[], str]) -> None:
        self._channel, self._why_lost = channel, why_lost
        self._is_stopped = False
        self._state: State = []

    def begin(self) -> str:
        """Wait until the namespace is there; return why it is not.

        Raises OSError, EOFError and Garbled where the sandbox is lost.
        """
        return str(received(self._channel, _SECONDS)[0].get("failed", ""))

    def stop(self) -> None:
        """Stop every thread, and see that it stopped. Raises Refused where one goes on."""
        if self._is_stopped:
            return
        answer = self._asked("stop")
        if answer["moving"]:
            thread = answer["moving"][0]
            why = f"a thread goes on after the answer and can't be stopped: {thread}"
            raise Refused(REWARD_HACK, one_line(why))
        self._is_stopped, self._state = True, answer["state"]

    def check(self) -> None:
        """See that no thread ran since all were stopped. Raises Refused."""
        state = self._asked("check")["state"]
        for thread in state:
            if thread not in self._state:
                why = (
                    f"a thread ran while its outputs were read: {' '.join(thread[:3])}"
                )
                raise Refused(REWARD_HACK, one_line(why))

    def go(self) -> None:
        """Let all processes continue."""
        if self._is_stopped:
            self._is_stopped = False
            self._send("go")

    def ending(self, *, within: float = LEAVING_SECONDS) -> str:
        """Return how the solution's process ended; empty where it lives on for so long."""
        status = self._asked("end", within=within)["ended"]
        if status is None:
            return ""
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return f"its process ended {how}"

    def used(self) -> dict[str, int]:
        """Return how many bytes, threads and descriptors the solution's processes have."""
        used: dict[str, int] = self._asked("measure")["used"]
        return used

    def peak(self) -> dict[str, int]:
        """Return the bytes of the solution's processes: resident, at most, and in files.

        What is resident at most counts since this was last asked.
        """
        sizes: dict[str, int] = self._asked("peak")["peak"]
        return sizes

    def close(self) -> None:
        """End all processes of the namespace."""
        self._channel.close()

    def _asked(self, what: str, **how: Any) -> Frame:
        self._send(what, **how)
        try:
            frame = received(self._channel, _SECONDS)[0]
            if "failed" not in frame:
                return frame
            why = f"the keeper of its processes failed: {frame['failed']}"
            raise Refused(REWARD_HACK, one_line(why))
        except (OSError, EOFError, Garbled):
            raise Refused(RUNTIME_ERROR, self._why_lost()) from None

    def _send(self, what: str, **how: Any) -> None:
        try:
            send(self._channel, {"do": what, **how})
        except OSError:
            raise Refused(RUNTIME_ERROR, self._why_lost()) from None
