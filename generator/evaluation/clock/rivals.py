"""The judge's links to the processes of rivals, and the memory that those return in."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from generator.dataset.paths import DatasetFile
from generator.evaluation.arena import Layout
from generator.evaluation.clock import nursery
from generator.evaluation.clock.page import Page
from generator.evaluation.clock.shared_memory import SharedMemory, create
from generator.evaluation.clock.timed_calls import CalleeLink, TimedCalls
from generator.evaluation.frames import Garbled, receive, send
from generator.execution.limits import lives

_START_SECONDS, _END_SECONDS = 300.0, 5.0
# a first call may compile
_CALL_SECONDS = 600.0
_ROOM = 256 << 20
TRUSTED = ("flashinfer", "pytorch")
"""What one process calls; each of the others has its own."""


class NoRival(Exception):
    """Raised where a process of rivals could not be started."""


class Rivals:
    """One process of rivals, and the names of what it can call.

    Raises NoRival where it does not come up.
    """

    def __init__(
        self,
        root: Path,
        file: DatasetFile,
        device: str,
        providers: Sequence[str],
    ) -> None:
        self._device = device
        self._channel, there = socket.socketpair()
        with there:
            self._process = nursery.begin(there)
        self._arena: SharedMemory | None = None
        self._arena_bytes = 0
        asked = {
            "root": str(root.absolute()),
            "file": asdict(file),
            "device": device,
            "providers": list(providers),
        }
        self.names: list[str] = []
        try:
            send(self._channel, asked)
        except OSError as error:
            raise NoRival(str(error)) from None

    def begin(self, arena_bytes: int) -> None:
        """Wait for its imports; its arena is of that size. Raises NoRival."""
        self._channel.settimeout(_START_SECONDS)
        try:
            frame, _ = receive(self._channel)
        except (OSError, EOFError, Garbled) as error:
            raise NoRival(f"its process ended: {type(error).__name__}") from None
        if "failed" in frame:
            raise NoRival(str(frame["failed"]))
        self.names = list(frame["kernels"])
        self._arena_bytes = arena_bytes

    def link(self, calls: TimedCalls, memory: SharedMemory) -> CalleeLink:
        """Return a link for calls on memory of a workload. Raises NoRoom for its arena."""
        if self._device == "cuda" and self._arena is None:
            self._arena = create("cuda", self._arena_bytes)
        page = Page.file()
        files = [page, memory.file]
        frame: dict[str, Any] = {
            "device": self._device,
            "bytes": memory.size,
            "clock": places(calls.layout, passes_outputs=False),
        }
        if self._arena is not None:
            files.append(self._arena.file)
            frame["arena"] = self._arena.size
        send(self._channel, frame, files)
        link = CalleeLink(
            Page(page),
            is_there=lambda: lives(self._process.pid),
            seconds=_CALL_SECONDS,
            arena=self._arena,
            memory=memory,
        )
        os.close(page)
        return link

    def end(self, link: CalleeLink) -> None:
        """End the calls of a link."""
        with suppress(OSError, EOFError, Garbled):
            link.end()
            self._channel.settimeout(_END_SECONDS)
            receive(self._channel)

    def kill(self) -> None:
        """Let the process end, which `close` waits for."""
        self._process.kill()

    def close(self) -> None:
        """End the process."""
        self._channel.close()
        self._process.close()
        if self._arena is not None:
            self._arena.close()


def places(layout: Layout, *, passes_outputs: bool) -> Mapping[str, Any]:
    """Return a layout as a callee reads it."""
    return {
        "inputs": layout.inputs,
        "outputs": layout.outputs,
        "passes_outputs": passes_outputs,
    }


def arena_bytes(layouts: Sequence[Layout]) -> int:
    """Return room for the outputs of any of the layouts, and for what calls allocate."""
    most = max(
        (sum(p.get("bytes", 0) for p in layout.outputs) for layout in layouts),
        default=0,
    )
    return 4 * most + _ROOM
