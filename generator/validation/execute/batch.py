"""Inside the sandbox: one process that calls many definitions, each in a fork of it.

It writes to stdout, as JSON lines, when each definition begins and how it ended. A fork
has neither this stdout nor access to this process: it answers over a pipe of its own,
and the answer is passed on unread.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from generator.execution.limits import hide_memory

MAX_REPORT = 16 * 1024
"""Bytes of a fork's answer; a longer one is dropped."""
_PROCESSES = 16
"""Processes and threads of the user: each counts the memory that it shares."""
_FILES = 64


def main() -> None:
    """Call the definitions of the file that the first argument names."""
    jobs = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    # nobody of the same user may look into this process, or at what it has open
    hide_memory()
    # torch and the ops are imported once, for all forks
    from generator.validation.execute.called import call

    for number, job in enumerate(jobs["definitions"]):
        _say({"begins": number})
        memory = jobs["memory_bytes"]
        job = {**job, "memory_bytes": memory, "dataset": jobs["dataset"]}
        ended, report = _watched(call, job, job["seconds"], memory)
        text = report.decode("ascii", "replace")
        # an answer is printable; escapes would make it longer than its share
        text = text if text.isascii() and text.isprintable() else ""
        _say({"ends": number, "how": ended, "report": text})


def _say(what: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _watched(
    call: Any, job: Mapping[str, Any], seconds: float, memory_bytes: int
) -> tuple[str, bytes]:
    """Return how a fork ended (`exit 0`, `signal 9`, `time`), and its answer."""
    answer, answers = os.pipe()
    fork = os.fork()
    if fork == 0:
        os.close(answer)
        _answer(call, job, answers, int(seconds), memory_bytes)
    os.close(answers)
    try:
        report, in_time = _read(answer, time.monotonic() + seconds)
    finally:
        os.close(answer)
        with suppress(ProcessLookupError):
            # one that answered has ended, or is about to
            if not in_time:
                os.kill(fork, signal.SIGKILL)
    _, status = os.waitpid(fork, 0)
    with suppress(ProcessLookupError):
        # all but this process, the first of the namespace: what the fork left behind
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    if not in_time:
        return "time", b""
    code = os.waitstatus_to_exitcode(status)
    return (f"signal {-code}" if code < 0 else f"exit {code}"), report


def _read(pipe: int, until: float) -> tuple[bytes, bool]:
    """Return what a pipe gives until its end, and whether the end came in time."""
    data = b""
    while len(data) <= MAX_REPORT:
        ready, _, _ = select.select([pipe], [], [], max(0, until - time.monotonic()))
        if not ready:
            return b"", False
        more = os.read(pipe, MAX_REPORT)
        if not more:
            return data, True
        data += more
    return b"", True


def _answer(
    call: Any, job: Mapping[str, Any], pipe: int, seconds: int, memory_bytes: int
) -> NoReturn:
    """Run in the fork: close inherited files, set limits, call and answer."""
    status = 1
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.dup2(pipe, 3)
        os.closerange(4, 1024)
        os.setpgid(0, 0)
        for which, most in (
            (resource.RLIMIT_CPU, seconds + 1),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_NPROC, _PROCESSES),
            (resource.RLIMIT_NOFILE, _FILES),
            (resource.RLIMIT_DATA, memory_bytes),
        ):
            _, hard = resource.getrlimit(which)
            known = hard == resource.RLIM_INFINITY
            value = most if known else min(most, hard)
            resource.setrlimit(which, (value, value))
        text = json.dumps({"said": call(job)}).encode()
        os.write(3, text)
        status = 0
    finally:
        os._exit(status)
