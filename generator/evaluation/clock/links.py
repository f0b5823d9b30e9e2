"""The links to all processes that call on one workload's memory."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from generator.evaluation.clock.page import Page
from generator.evaluation.clock.rivals import Rivals, places
from generator.evaluation.clock.shared_memory import SharedMemory
from generator.evaluation.clock.timed_calls import CalleeLink, TimedCalls
from generator.evaluation.session import Session
from generator.evaluation.verdict import Refused
from generator.execution.limits import lives


@dataclass
class Links:
    """The links to the processes that call on one workload's memory."""

    calls: TimedCalls
    _ends: list[Any] = field(default_factory=list)

    def of_session(
        self,
        session: Session,
        memory: SharedMemory,
        passes_outputs: bool,
        arena: SharedMemory | None,
    ) -> CalleeLink:
        """Return a link to a process in a sandbox. Raises Refused."""
        page = Page.file()
        files = [page, memory.file]
        frame: dict[str, Any] = {
            "bytes": memory.size,
            "clock": places(self.calls.layout, passes_outputs=passes_outputs),
        }
        if arena is not None:
            files.append(arena.file)
            frame["arena"] = arena.size
        nonce = session.lend(frame, files)
        keeper = session.keeper
        link = CalleeLink(
            Page(page),
            keeper.go,
            keeper.stop,
            lambda: lives(session.pid),
            session.call_seconds,
            arena,
            memory,
        )
        os.close(page)

        def end() -> None:
            with suppress(Refused):
                link.end()
                session.lent(nonce)

        self._ends.append(end)
        return link

    def of_rivals(self, process: Rivals, memory: SharedMemory) -> CalleeLink:
        """Return a link to a process of rivals."""
        link = process.link(self.calls, memory)
        self._ends.append(lambda: process.end(link))
        return link

    def end(self) -> None:
        """End all links."""
        while self._ends:
            self._ends.pop()()
