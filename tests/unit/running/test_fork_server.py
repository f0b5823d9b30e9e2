"""A fork server imports once and forks for whoever knows its address."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from generator.running.fork_server import UNKNOWN, ForkServer, fork_at
from tests.builders import ROOT

MODULE = """
import os, sys, threading, time
made = []
def prepare(what):
    made.append(os.getpid())
    if what == "raises":
        raise OSError("no such library")
    if what == "threads":
        threading.Thread(target=time.sleep, args=[60], daemon=True, name="busy").start()
def tell(descriptor):
    text = f"{os.getpid()} {made[0]} {os.environ.get('REFERENCE_OWN')} {sys.path[0]} {sys.stdin.read()}"
    print("said", flush=True)
    os.write(descriptor, text.encode())
def leave(descriptor):
    os._exit(7)
def stay(descriptor):
    os.write(descriptor, b"here")
    sys.stdin.read()
"""


@pytest.fixture
def begin(tmp_path):
    """Return a function that starts a fork server; all are stopped."""
    (tmp_path / "prepared.py").write_text(MODULE)
    started = []

    def start(what=""):
        paths = [str(tmp_path), *sys.path]
        started.append(ForkServer("prepared:prepare", [what], paths, {}))
        return started[-1]

    yield start
    for fork_server in started:
        if not fork_server._log.closed:
            fork_server.stop()


@contextmanager
def asked(fork_server, function, wait=30.0):
    """Ask for a fork; yield it, its input, a file with its output, what it writes."""
    (source, life), (heard, told) = os.pipe(), os.pipe()
    with open(os.path.join(fork_server._folder.name, "log"), "w+") as log:
        files = [source, log.fileno(), told]
        forked = fork_at(
            fork_server.address, f"prepared:{function}", files, ["/own"], wait
        )
        os.close(source)
        os.close(told)
        with os.fdopen(life, "w") as life_file, os.fdopen(heard) as heard_file:
            yield forked, life_file, log, heard_file


def test_a_fork_has_what_was_prepared_and_what_its_asker_gives(begin, monkeypatch):
    monkeypatch.setenv("REFERENCE_OWN", "mine")
    fork_server = begin()
    told = []
    for _ in range(2):
        with asked(fork_server, "tell") as (forked, life, log, heard):
            life.write("input")
            life.close()
            told.append(heard.read().split())
            assert forked.wait(20) == 0
            assert int(told[-1][0]) == forked.pid
            assert log.seek(0) == 0
            assert log.read() == "said\n"
    (one, first, *rest), (other, second, *_) = told
    assert first == second == str(fork_server._process.pid)
    assert one != other
    assert rest == ["mine", "/own", "input"]
    assert fork_server.stop() == ""


@pytest.mark.parametrize(
    ("function", "sent", "code"), [("leave", 0, 7), ("stay", 9, -9)]
)
def test_how_a_fork_ended_is_known(begin, function, sent, code):
    with asked(begin(), function) as (forked, _, _, _):
        if sent:
            assert forked.poll() is None
            os.kill(forked.pid, sent)
        assert forked.wait(20) == forked.poll() == code


def test_a_fork_outlives_the_fork_server(begin):
    fork_server = begin()
    with asked(fork_server, "stay") as (forked, life, _, heard):
        os.kill(fork_server._process.pid, signal.SIGKILL)
        fork_server._process.wait()
        assert fork_at(fork_server.address, "prepared:tell", [0, 1, 2], [], 5.0) is None
        assert forked.poll() is None
        assert heard.read(4) == "here"
        with pytest.raises(subprocess.TimeoutExpired):
            forked.wait(0.05)
        life.close()
        assert forked.wait(20) == UNKNOWN
    assert fork_server.stop() == "it ended with -9"


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("raises", "it ended with 1: OSError: no such library"),
        ("threads", "it ended with 1: it can't be forked: it runs threads (busy)"),
    ],
)
def test_a_fork_server_that_can_not_serve_says_why(begin, what, why):
    fork_server = begin(what)
    with asked(fork_server, "tell") as (forked, _, _, _):
        assert forked is None
    fork_server._process.wait(20)
    assert fork_server.stop() == why


def test_nobody_waits_for_one_that_is_silent(begin):
    fork_server = begin()
    os.kill(fork_server._process.pid, signal.SIGSTOP)
    with asked(fork_server, "tell", wait=0.2) as (forked, _, _, _):
        assert forked is None


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_it_ends_with_the_process_that_started_it(begin, tmp_path):
    begin()
    text = (
        "import os, sys; from generator.running.fork_server import ForkServer\n"
        f"n = ForkServer('prepared:prepare', [''], {[str(tmp_path), *sys.path]}, {{}})\n"
        "print(n._process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", text]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    end = time.monotonic() + 20
    stat = Path(f"/proc/{done.stdout.strip()}/stat")
    while stat.exists() and stat.read_text().split()[2] != "Z":
        assert time.monotonic() < end
        time.sleep(0.02)
