"""Run a command confined, watch what it uses, and kill all of it at a limit."""

from __future__ import annotations

import json
import os
import select
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from generator.execution.sandbox import cuda, paths
from generator.execution.sandbox.bubblewrap import Bubblewrap, names_of, view
from generator.execution.sandbox.system_calls import call_filter

_TICK = 0.05
_FLOOD = 256
"""A command that writes this many times the output that is kept is killed."""
_ENTRIES = 100_000
"""Files and folders that a command may have."""
_OWN = 2
"""Processes of bubblewrap: one waits outside, one reaps inside."""
STOPPED = "stopped"
_Fields = list[bytes]
_START = Path(__file__).with_name("start.py")
_RESERVED = 16 << 30
"""Addresses that a process may reserve beyond its memory.

An import of torch for CPUs reserves 0.6 GiB, every thread 8 MiB of stack and 64 MiB of
allocator; a build of torch for CUDA maps several GiB of libraries. What is in use is
limited apart from that, so that this bound need not be close."""


@dataclass(frozen=True)
class Limits:
    """Limits of a command; sizes in bytes, times in seconds.

    At `wall_seconds` all of its processes are killed; `cpu_seconds` are those of one
    process. `memory_bytes` are resident in all processes together, each of which may
    reserve addresses for more. `processes` counts threads as well. `open_files` are
    those of one process, `file_bytes` the size of one file; `disk_bytes` may be in all
    files together, which lie in memory. Of each of the two streams
    `output_bytes` are kept, the first and the last half.
    """

    wall_seconds: float = 600.0
    cpu_seconds: int = 600
    memory_bytes: int = 8 << 30
    processes: int = 256
    open_files: int = 1024
    file_bytes: int = 1 << 30
    disk_bytes: int = 2 << 30
    output_bytes: int = 1 << 20


CUDA_LIMITS = Limits(3600.0, 3600, 64 << 30, 4096, 4096, 4 << 30, 16 << 30)
"""Each run compiles its kernels, many side by side; pinned memory counts."""


@dataclass(frozen=True)
class CommandOutcome:
    """The exit status of a confined command, and its output.

    `status` is `exited`, `killed` by a signal, `limit` or `not started`; `detail` says
    why it was not started. An `exit_status` is not greater than 128: bubblewrap adds
    that to a signal. `limit` is what the command ran into: wall clock, cpu time, memory,
    processes, disk, …
    """

    status: str
    exit_status: int | None = None
    signal: int | None = None
    limit: str | None = None
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    seconds: float = 0.0
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself and said that all was well."""
        return self.status == "exited" and self.exit_status == 0


@dataclass(frozen=True)
class Command:
    """A program and the part of the machine that it has; see `machine.run_confined`."""

    words: Sequence[str]
    read_only: Sequence[Path] = ()
    results: Path | None = None
    limits: Limits = field(default_factory=Limits)
    environment: Mapping[str, str] = field(default_factory=dict)
    devices: bool = False
    hidden: Sequence[Path] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    channel: int | None = None
    nests: bool = False
    is_first: bool = False


def run(
    bubblewrap: Bubblewrap, command: Command, stop: threading.Event | None = None
) -> CommandOutcome:
    """Run a command in a `bubblewrap`. Raises OSError where no file can be made."""
    limits = command.limits
    user = bubblewrap.user()
    read_only = paths.both_names([str(path) for path in command.read_only])
    readable = [*paths.interpreter_paths(), *read_only]
    environment = paths.environment()
    files = cuda.devices() if command.devices else []
    if command.devices:
        compilers = cuda.toolkit(os.environ)
        readable += paths.both_names([compilers] if compilers else [])
        environment |= cuda.environment(os.environ, environment["PATH"])
    with ExitStack() as stack:
        streams = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
        read, write = os.pipe()
        status = stack.enter_context(open(read, "rb"))
        # bubblewrap keeps one end from the command, and `start` the other
        passed = [write, os.dup(write)]
        masked = paths.both_names([str(path) for path in command.hidden])
        seen = view(readable, files, limits.disk_bytes, masked)
        if command.results is not None:
            results = _made(command.results, user if bubblewrap.setpriv else None)
            seen += ["--bind", results, f"{paths.WORK}/{command.results.name}"]
        seen += ["--json-status-fd", str(write)]
        for folder in sorted({os.path.dirname(name) for name in command.files}):
            seen += ["--perms", "0755", "--dir", folder]
        for name, data in (*names_of(user).items(), *command.files.items()):
            passed.append(_in_memory(data))
            seen += ["--perms", "0444", "--ro-bind-data", str(passed[-1]), name]
        program = b"" if command.nests else call_filter(devices=command.devices)
        if program:
            passed.append(_in_memory(program))
            seen += ["--seccomp", str(passed[-1])]
        plan = {
            "limits": rlimits(limits, addresses=not command.devices),
            "read_only": read_only,
            "devices": [f for f in files if os.path.basename(f) in cuda.NEEDED],
            "gpus": cuda.gpus(files),
            "work": paths.WORK,
            "report": passed[1],
        }
        begin = [sys.executable, "-I", "-S", "-B", "-c", _START.read_text("utf-8")]
        how = {"nests": command.nests, "is_first": command.is_first}
        whole = bubblewrap.command(user, seen, **how)
        whole += [*begin, json.dumps(plan), *command.words]
        shared = [] if command.channel is None else [command.channel]
        began = time.monotonic()
        try:
            started = subprocess.Popen(
                whole,
                stdin=subprocess.DEVNULL,
                stdout=streams[0],
                stderr=streams[1],
                env={**environment, **command.environment},
                cwd="/",
                pass_fds=[*passed, *shared],
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return CommandOutcome("not started", detail=str(error))
        finally:
            for descriptor in passed:
                os.close(descriptor)
        events, limit = _watched(started, status, streams, limits, stop)
        seconds = time.monotonic() - began
        (out, cut), (err, also) = (_captured(s, limits.output_bytes) for s in streams)
    ended: int | None = events.get("exit-code")
    if "not-started" in events or (ended is None and limit is None):
        return CommandOutcome(
            "not started", detail=events.get("not-started") or err.strip()
        )
    number = ended - 128 if ended is not None and ended > 128 else None
    if number in (signal.SIGXCPU, signal.SIGXFSZ):
        limit = limit or ("cpu time" if number == signal.SIGXCPU else "file size")
    kind = "limit" if limit else "exited" if number is None else "killed"
    code = ended if kind == "exited" else None
    return CommandOutcome(kind, code, number, limit, out, err, cut or also, seconds)


def rlimits(limits: Limits, *, addresses: bool) -> dict[str, int]:
    """Return what the kernel holds a process to, by the names of its limits."""
    wanted = {
        "CORE": 0,
        "CPU": limits.cpu_seconds,
        "NOFILE": limits.open_files,
        "FSIZE": limits.file_bytes,
        "NPROC": limits.processes,
    }
    # CUDA reserves addresses by the terabyte
    return wanted | ({"AS": limits.memory_bytes + _RESERVED} if addresses else {})


def _captured(file: IO[bytes], keep: int) -> tuple[str, bool]:
    """Return the first and the last half of a file, and whether `keep` was too little.

    At most `keep` bytes are shown, as text that no terminal obeys.
    """
    size, half = os.fstat(file.fileno()).st_size, keep // 2
    if size <= keep:
        return _text(file, 0, size), False
    dropped = f"\n[… {size - 2 * half} bytes not shown …]\n"
    return _text(file, 0, half) + dropped + _text(file, size - half, half), True


def _text(file: IO[bytes], start: int, size: int) -> str:
    text = os.pread(file.fileno(), size, start).decode(errors="replace")
    return "".join(
        c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text
    )


def _in_memory(data: bytes) -> int:
    """Return a descriptor that `data` can be read from."""
    descriptor = os.memfd_create("sandbox")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _made(results: Path, owner: int | None) -> str:
    """Make the file of results, which was not there. Raises OSError."""
    flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY
    file = os.open(results, flags, 0o600)
    try:
        if owner is not None:
            os.fchown(file, owner, owner)
    finally:
        os.close(file)
    return os.path.realpath(results)


def read_result(results: Path, limit: int = 16 << 20) -> bytes | None:
    """Return what a confined command wrote as its results; None where it is too much.

    It was mounted alone, so that the command could write to it and not replace it.
    """
    with suppress(OSError):
        file = os.open(results, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(file, "rb") as opened:
            status = os.fstat(file)
            if stat.S_ISREG(status.st_mode) and 0 < status.st_size <= limit:
                return opened.read(limit)
    return None


def _watched(
    started: subprocess.Popen[bytes],
    status: IO[bytes],
    streams: Sequence[IO[bytes]],
    limits: Limits,
    stop: threading.Event | None,
) -> tuple[dict[str, Any], str | None]:
    """Watch a run until nothing is left of it; return what was reported, and its limit.

    `stop` ends it as a limit does.
    """
    events: dict[str, Any] = {}
    limit = None
    until = time.monotonic() + limits.wall_seconds
    with suppress(ValueError):
        events = json.loads(status.readline())
    try:
        # the first process of the namespace: when it has ended all others have
        first = os.pidfd_open(events["child-pid"])
    except (OSError, KeyError):
        started.wait()
    else:
        try:
            while limit is None and not select.select([first], [], [], _TICK)[0]:
                if stop is not None and stop.is_set():
                    limit = STOPPED
                elif time.monotonic() > until:
                    limit = "wall clock"
                else:
                    limit = _exceeded(started.pid, streams, limits, events["child-pid"])
        finally:  # also when the reader presses Ctrl-C
            with suppress(OSError):
                signal.pidfd_send_signal(first, signal.SIGKILL)
            select.select([first], [], [])
            os.close(first)
            started.wait()
    for line in status.read().splitlines():
        with suppress(ValueError):
            events |= json.loads(line)
    return events, limit


def _exceeded(
    process: int, streams: Sequence[IO[bytes]], limits: Limits, first: int
) -> str | None:
    """Return the limit that the processes below one have passed; None if none."""
    most = _FLOOD * limits.output_bytes
    if any(os.fstat(stream.fileno()).st_size > most for stream in streams):
        return "output"
    threads, memory, seconds = _use_below(process, first)
    if memory > limits.memory_bytes:
        return "memory"
    if threads > limits.processes + _OWN:
        return "processes"
    # the kernel sends a signal first, which can be ignored
    if seconds > limits.cpu_seconds + _TICK:
        return "cpu time"
    return "files" if _has_many_files(first) else None


def _has_many_files(first: int) -> bool:
    """Return whether the files that a process can write to are more than there may be."""
    folder = f"/proc/{first}/root{paths.TEMPORARY}"
    # it has ended, or its files can't be seen by an ordinary caller
    with suppress(OSError):
        # until its own are mounted it sees the machine's, of which there may be millions
        if os.stat(folder).st_dev == os.stat(paths.TEMPORARY).st_dev:
            return False
        usage = os.statvfs(folder)
        return usage.f_files - usage.f_ffree > _ENTRIES
    return False


def _use_below(process: int, first: int) -> tuple[int, int, float]:
    """Return what the processes below one use, as /proc says.

    Threads and resident bytes of all, and the CPU seconds of the busiest. `first` is the
    first one of their namespace.
    """
    every = _stats_within(first)
    if every is None:
        every = _below(process, _stats("/proc"))
    threads, pages, ticks = 0, 0, 0
    for fields in every:
        threads += int(fields[17])
        pages += int(fields[21])
        ticks = max(ticks, int(fields[11]) + int(fields[12]))
    memory = pages * os.sysconf("SC_PAGE_SIZE")
    return threads, memory, ticks / os.sysconf("SC_CLK_TCK")


def _stats_within(first: int) -> Collection[_Fields] | None:
    """Return the fields of all processes of a namespace; None where these can't be seen.

    The machine has many others, each of which takes as long to read.
    """
    folder = f"/proc/{first}/root/proc"
    with suppress(OSError):
        # until its own is mounted it sees the machine's
        if os.stat(folder).st_dev != os.stat("/proc").st_dev:
            return _stats(folder).values()
    return None


def _stats(folder: str) -> dict[int, _Fields]:
    """Return number → fields of each process of a /proc, from its state on."""
    stats = {}
    for name in filter(str.isdecimal, os.listdir(folder)):
        with suppress(OSError), open(f"{folder}/{name}/stat", "rb", 0) as file:
            text = file.read(4096)
            # the name before may hold anything
            stats[int(name)] = text[text.rindex(b")") + 2 :].split()
    return stats


def _below(process: int, stats: Mapping[int, _Fields]) -> list[_Fields]:
    """Return the fields of the processes below one."""
    children = defaultdict(list)
    for number, fields in stats.items():
        children[int(fields[1])].append(number)
    below, waiting = [], [process]
    while waiting:
        under = children[waiting.pop()]
        waiting += under
        below += [stats[number] for number in under]
    return below
