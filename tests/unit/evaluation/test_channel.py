"""The judge's end of a channel: what comes beside an answer stays outside."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time

from generator.evaluation.channel import pair, received


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_descriptors_beside_the_bytes_of_an_answer_are_never_held() -> None:
    here, there = pair()
    data = json.dumps({"outputs": "passed", "space": " " * 500}).encode()
    data = struct.pack("<Q", len(data)) + data
    most = []

    def answer() -> None:
        with open(os.devnull, "rb") as null:
            for byte in data[:-1]:
                socket.send_fds(there, [bytes([byte])], [null.fileno()] * 16)
            time.sleep(0.2)
            most.append(_descriptors())
            there.sendall(data[-1:])

    before = _descriptors()
    thread = threading.Thread(target=answer)
    thread.start()
    frame, sender = received(here, 10.0)
    thread.join()
    assert frame["outputs"] == "passed"
    assert sender == os.getpid()
    assert most[0] <= before + 1
    here.close()
    there.close()
