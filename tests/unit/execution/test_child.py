"""A child is told by its events and its end, and holds nobody else's connection."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from generator.execution.child import Child, Link, by_status


def of_child(work: Callable[[Link], Any], seconds: float = 30.0) -> tuple[Any, int]:
    """Return the first event of a child, and its exit code."""
    child = Child(work)
    event = child.link.receive(seconds)
    return event, child.close(0.5)


def test_events_go_both_ways():
    def doubles(link: Link) -> None:
        while (event := link.receive()) is not None:
            link.send({"event": "answer", "value": 2 * event["value"]})

    child = Child(doubles)
    for value in (1, "ab" * 10**6):
        child.link.send({"event": "ask", "value": value})
        assert child.link.receive(30.0) == {"event": "answer", "value": 2 * value}
    child.close()
    assert not child.link.silent


@pytest.mark.parametrize(
    ("work", "how"),
    [
        (lambda link: None, "with status 0"),
        (lambda link: os._exit(3), "with status 3"),
        (lambda link: 1 / 0, "with status 1"),
        (lambda link: os.kill(os.getpid(), 9), "by SIGKILL"),
        # one without a name
        (lambda link: os.kill(os.getpid(), 40), "by signal 40"),
    ],
)
def test_one_that_is_gone_is_told_by_its_status(work, how):
    event, code = of_child(work)
    assert (event, by_status(code)) == (None, how)


def test_one_that_is_silent_is_ended():
    begun = time.monotonic()
    child = Child(lambda link: signal.pause())
    assert child.link.receive(0.2) is None
    assert child.link.silent
    assert child.close() == -signal.SIGKILL
    assert time.monotonic() - begun < 10.0


@pytest.mark.parametrize(
    "text", [b"{}\n", b"[1]\n", b"\xff\n", b'{"event": 1}\n', b"[" * 9**5 + b"\n"]
)
def test_what_is_no_event_is_none(text):
    child = Child(lambda link: os.write(link.fileno(), text))
    assert child.link.receive(30.0) is None
    assert (child.link.garbled, child.link.silent) == (True, False)
    child.close()


def test_a_child_has_no_end_of_a_link_but_its_own():
    def tells(link: Link) -> None:
        link.send({"event": "open", "open": [is_open(n) for n in descriptors]})

    first = Child(lambda link: link.receive())
    descriptors = [first.link.fileno()]
    second = Child(tells)
    event = second.link.receive(30.0)
    assert event is not None
    # its own may have the number that the first one's other end had: never this one
    assert event["open"] == [False]
    # and where the parent lets go of it, the first one is through
    first.link.send({"event": "end"})
    assert first.link.receive(30.0) is None
    assert not first.link.silent
    first.close()
    second.close()


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_the_end_of_one_that_waits_takes_no_time():
    child = Child(lambda link: link.receive())
    # nobody waits until it ends by itself, as it would at the end of its link
    assert child.close() == -signal.SIGKILL


def test_what_a_child_began_ends_with_it():
    def begins(link: Link) -> None:
        sleeps = subprocess.Popen(["sleep", "60"])
        link.send({"event": "began", "pid": sleeps.pid})

    event, _ = of_child(begins)
    for _ in range(500):
        if not alive(event["pid"]):
            break
        time.sleep(0.01)
    assert not alive(event["pid"])


def test_what_it_forks_ends_at_once_unless_it_is_a_child():
    def forks(link: Link) -> None:
        pid = os.fork()
        if not pid:
            link.send({"event": "twice"})
        link.send({"event": str(os.waitpid(pid, 0)[1])})
        child = Child(lambda own: own.send({"event": "of a child"}))
        link.send(child.link.receive(30.0) or {})
        child.close()

    child = Child(forks)
    assert child.link.receive(30.0) == {"event": "0"}
    assert child.link.receive(30.0) == {"event": "of a child"}
    assert child.link.receive(30.0) is None
    child.close()


def alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
