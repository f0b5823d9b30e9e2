"""Frames on a channel: 8 bytes of length, then JSON; descriptors come with it.

Both sides use it: the judge, and what runs in the sandbox, which has no package of ours.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

_LENGTH = struct.Struct("<Q")
MOST_BYTES = 1 << 24
"""Of a frame: a question may hold all sources of a solution."""

Frame = dict[str, Any]


class Garbled(Exception):
    """Raised for bytes on a channel that are no frame."""


def send(channel: socket.socket, frame: Frame, files: Sequence[int] = ()) -> None:
    """Send a frame and descriptors. Raises OSError where nobody is there any more."""
    data = json.dumps(frame).encode()
    data = _LENGTH.pack(len(data)) + data
    sent = socket.send_fds(channel, [data], list(files)) if files else 0
    channel.sendall(data[sent:])


def is_open(channel: socket.socket) -> Callable[[], bool]:
    """Return a function that says at once whether the other side has its end yet."""
    ends = select.poll()
    ends.register(channel, select.POLLRDHUP)
    return lambda: not ends.poll(0)


def receive(
    channel: socket.socket,
    until: float | None = None,
    most: int = MOST_BYTES,
    descriptors: int = 16,
) -> tuple[Frame, list[int]]:
    """Return the next frame of at most that many bytes, and its descriptors.

    `until` is a time of the monotonic clock. Each part of a frame may bring so many
    `descriptors`; with 0 the kernel closes what comes.

    Raises EOFError, Garbled, and TimeoutError where it is not whole by then.
    """
    files: list[int] = []

    def exactly(count: int) -> bytearray:
        data = bytearray()
        while len(data) < count:
            if until is not None:
                # never 0, which would not wait for what is there
                channel.settimeout(max(until - time.monotonic(), 1e-3))
            left = count - len(data)
            if descriptors:
                more, came, _, _ = socket.recv_fds(channel, left, descriptors)
                files.extend(came)
            else:
                more = channel.recv(left)
            if not more:
                raise EOFError
            data += more
        return data

    (length,) = _LENGTH.unpack(exactly(_LENGTH.size))
    if length > most:
        raise Garbled("a frame that is too long")
    try:
        frame = json.loads(exactly(length))
    except (ValueError, RecursionError) as error:
        raise Garbled("a frame that is no JSON") from error
    if not isinstance(frame, dict):
        raise Garbled("a frame that is no object")
    return frame, files
