"""The judge's end of a channel: frames, and which process sent them."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from generator.evaluation.frames import receive

_CREDENTIALS = struct.Struct("3i")
# parsed, an answer takes fifty times as much: the state of 4,096 threads has half of it
_MOST_BYTES = 1 << 20


def pair() -> tuple[socket.socket, socket.socket]:
    """Return two ends of a channel; the first says which process has sent."""
    here, there = socket.socketpair()
    here.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return here, there


def received(channel: socket.socket, seconds: float) -> tuple[dict[str, Any], int]:
    """Return a frame and who sent it, as the operating system says, within `seconds`.

    Raises EOFError at the end of the channel, and what `receive` raises.
    """
    until = time.monotonic() + seconds
    channel.settimeout(seconds)
    # room for the sender alone: descriptors that come are closed by the kernel, since
    # one answer could bring as many as this process may have
    space = socket.CMSG_SPACE(_CREDENTIALS.size)
    first, came, _, _ = channel.recvmsg(1, space, socket.MSG_PEEK)
    if not first:
        raise EOFError
    frame, _ = receive(channel, until, _MOST_BYTES, descriptors=0)
    (_, _, data) = came[0]
    return frame, _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0]
