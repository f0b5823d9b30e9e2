"""No process outlives its run, reaches another or uses more than it may."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from generator.execution.sandbox import Limits, supervise

pytestmark = pytest.mark.usefixtures("_confines")
SHORT = Limits(wall_seconds=1.5)


def below(process: int) -> set[int]:
    """Return the children of a process."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            if f"\nPPid:\t{process}\n" in status.read_text():
                found.add(int(status.parent.name))
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left():
    """After each run no process is left of it, not even a dead one."""
    before = below(os.getpid())
    yield
    assert below(os.getpid()) <= before


def running(mark: str) -> bool:
    """Return whether a process with a word in its command line is left anywhere."""
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if mark.encode() in file.read():
                    return True
        except OSError:
            continue
    return False


def test_sleeping_forever_ends_at_the_wall_clock(hostile) -> None:
    outcome = hostile("import time; time.sleep(1000)", limits=SHORT)
    assert (outcome.status, outcome.limit) == ("limit", "wall clock")
    assert outcome.seconds < 6


def test_ignoring_signals_does_not_help(hostile) -> None:
    script = """
    import signal, time
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        time.sleep(1)
    """
    assert hostile(script, limits=SHORT).limit == "wall clock"


DAEMON = """
import os, sys, time
mark = "daemon-of-{mark}"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for stream in (0, 1, 2):
            os.close(stream)
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)", mark])
    os._exit(0)
time.sleep(0.3)
"""


def test_a_daemon_does_not_outlive_the_run(hostile, tmp_path) -> None:
    mark = tmp_path.name
    outcome = hostile(DAEMON.format(mark=mark))
    assert outcome.ok
    assert not running(f"daemon-of-{mark}")


def test_a_daemon_does_not_outlive_the_wall_clock(hostile, tmp_path) -> None:
    mark = tmp_path.name
    script = DAEMON.format(mark=mark) + "\ntime.sleep(60)\n"
    assert hostile(script, limits=SHORT).limit == "wall clock"
    assert not running(f"daemon-of-{mark}")


FORKS = """
import os, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
"""


def test_endless_forks_are_bounded(hostile) -> None:
    limits = Limits(wall_seconds=1.5, processes=40)
    outcome = hostile(FORKS, limits=limits)
    assert outcome.limit in ("wall clock", "processes")


@pytest.mark.parametrize("sees_namespace", [True, False])
def test_processes_are_counted_where_the_kernel_does_not(
    hostile, monkeypatch, sees_namespace: bool
) -> None:
    monkeypatch.setattr(supervise, "rlimits", lambda limits, addresses: {})
    if not sees_namespace:
        monkeypatch.setattr(supervise, "_stats_within", lambda first: None)
    script = """
    import os, time
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(60)
    time.sleep(60)
    """
    limits = Limits(wall_seconds=10, processes=40)
    assert hostile(script, limits=limits).limit == "processes"


def test_the_kernel_refuses_more_processes(hostile) -> None:
    script = """
    import os, time
    started = 0
    try:
        for _ in range(60):
            if os.fork() == 0:
                time.sleep(60)
            started += 1
    except OSError:
        print(started)
    """
    outcome = hostile(script, limits=Limits(wall_seconds=10, processes=20))
    # in a user namespace the two that start it count as well
    assert 10 < int(outcome.stdout.split()[-1]) < 20


def test_filling_memory_ends_it(hostile) -> None:
    script = """
    import time
    kept = []
    while True:
        kept.append(b"x" * (8 << 20))
        time.sleep(0.005)
    """
    limits = Limits(wall_seconds=20, memory_bytes=200 << 20)
    assert hostile(script, limits=limits).limit == "memory"


def test_reserving_memory_is_refused_by_the_kernel(hostile) -> None:
    outcome = hostile("x = bytearray(1 << 40)")
    assert "MemoryError" in outcome.stderr


def test_cpu_time_ends_it(hostile) -> None:
    limits = Limits(wall_seconds=20, cpu_seconds=1)
    assert hostile("while True: pass", limits=limits).limit == "cpu time"


def test_cpu_time_ends_what_ignores_its_signal(hostile) -> None:
    script = """
    import signal
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass
    """
    limits = Limits(wall_seconds=20, cpu_seconds=1)
    assert hostile(script, limits=limits).limit == "cpu time"


def test_an_exit_that_skips_everything_is_an_exit(hostile) -> None:
    outcome = hostile("import os; os._exit(0)")
    assert (outcome.status, outcome.exit_status) == ("exited", 0)
    outcome = hostile("import os; os._exit(7)")
    assert (outcome.status, outcome.exit_status) == ("exited", 7)


def test_a_signal_is_reported(hostile) -> None:
    outcome = hostile("import os; os.kill(os.getpid(), 9)")
    assert (outcome.status, outcome.signal, outcome.limit) == ("killed", 9, None)
    assert hostile("import os; os.kill(os.getpid(), 40)").signal == 40


REACH = f"""
import os, signal
print(os.getppid())
os.kill({os.getpid()}, 0)
"""


def test_the_caller_cannot_be_signalled(hostile) -> None:
    outcome = hostile(REACH)
    assert outcome.exit_status == 1
    assert "os.kill" in outcome.stderr or "Error" in outcome.stderr


def test_the_caller_is_signalled_without_the_sandbox(free) -> None:
    """The test above can fail."""
    assert free(REACH).returncode == 0


def test_killing_its_supervisor_gains_nothing(hostile) -> None:
    script = """
    import os, signal, time
    for target in (os.getppid(), 1, -1):
        try:
            os.kill(target, signal.SIGKILL)
        except OSError as error:
            print(type(error).__name__)
    time.sleep(1000)
    """
    outcome = hostile(script, limits=SHORT)
    assert outcome.status in ("limit", "killed")


def test_the_processes_of_others_are_not_seen(hostile, monkeypatch) -> None:
    script = f"""
    import os
    for process in ({os.getpid()}, os.getppid(), 1):
        for name in ("environ", "mem", "root/etc/shadow", "fd/0", "cwd"):
            try:
                open(f"/proc/{{process}}/{{name}}", "rb").read(10)
            except OSError:
                continue
            print("read", process, name)
    """
    outcome = hostile(script)
    assert outcome.ok
    assert outcome.stdout == ""


@pytest.mark.calls_are_filtered
def test_tracing_is_refused(hostile) -> None:
    script = """
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((16, os.getppid()), (0x4206, os.getppid())):
        print(libc.ptrace(*call, 0, 0), ctypes.get_errno())
    print(libc.unshare(0x10000000), ctypes.get_errno())
    print(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None), ctypes.get_errno())
    """
    import ctypes.util  # where Python was built without ctypes nothing is confined

    assert ctypes.util
    outcome = hostile(script)
    assert outcome.stdout.splitlines() == ["-1 1"] * 4


def test_privileges_are_gone(hostile) -> None:
    outcome = hostile("print(open('/proc/self/status').read())")
    status = dict(
        line.split(":", 1) for line in outcome.stdout.splitlines() if ":" in line
    )
    for name in ("CapPrm", "CapEff", "CapAmb", "CapInh"):
        assert int(status[name], 16) == 0, name
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Uid"].split()[0] != "0"


def test_a_flood_of_output_is_bounded(hostile) -> None:
    script = """
    import os
    while True:
        os.write(1, b"x" * 65536)
    """
    limits = Limits(wall_seconds=20, output_bytes=10_000)
    outcome = hostile(script, limits=limits)
    assert outcome.limit == "output"
    assert outcome.truncated
    assert len(outcome.stdout) < 11_000
    assert "bytes not shown" in outcome.stdout


def test_output_cannot_drive_a_terminal(hostile) -> None:
    script = r"""
    import os
    os.write(1, b"\x1b]0;owned\x07\x1b[2J\xe2\x80\xae\xff\rPASSED\n")
    """
    outcome = hostile(script)
    assert outcome.stdout == "\\x1b]0;owned\\x07\\x1b[2J\\u202e\ufffd\\rPASSED\n"


def test_a_reader_who_ends_takes_all_with_him(hostile, tmp_path) -> None:
    """The supervisor is killed without a chance to clean up."""
    import subprocess

    mark = f"orphan-of-{tmp_path.name}"
    inner = f"import time; mark = {mark!r}; time.sleep(60)"
    script = (
        "import sys; from pathlib import Path; from generator.execution.sandbox import *;"
        f"run_confined([sys.executable, '-I', '-S', '-c', {inner!r}], read_only=[])"
    )
    # its own command line would be found as well, so it reads the script
    reader = subprocess.Popen([sys.executable, "-"], stdin=subprocess.PIPE)
    assert reader.stdin is not None
    reader.stdin.write(script.encode())
    reader.stdin.close()
    until = time.monotonic() + 10
    while not running(mark) and time.monotonic() < until:
        time.sleep(0.05)
    assert running(mark)
    reader.kill()
    reader.wait()
    until = time.monotonic() + 5
    while running(mark) and time.monotonic() < until:
        time.sleep(0.05)
    assert not running(mark)


def test_the_first_process_is_not_stopped_by_what_it_starts(hostile) -> None:
    script = """
    import os, signal
    child = os.fork()
    if child == 0:
        for number in (signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM):
            os.kill(1, number)
        os._exit(7)
    print(os.getpid(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    outcome = hostile(script, is_first=True)
    assert outcome.stdout == "1 7\n"


@pytest.mark.calls_are_filtered
@pytest.mark.parametrize(
    "call",
    [
        "libc.shmget(0, 1 << 20, 0o1600)",
        "libc.msgget(0, 0o1600)",
        "libc.semget(0, 1, 0o1600)",
        "libc.mq_open(b'/x', 0o102, 0o600, None)",
        "libc.memfd_create(b'x', 0)",
        "libc.syscall(447, 0)",
        "os.kill(os.getpid(), 18)",
        "mmap.mmap(-1, 1 << 20)",
        "mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 20)",
    ],
)
def test_memory_of_no_process_is_refused(hostile, call) -> None:
    script = f"""
    import ctypes, mmap, os, sys
    libc = ctypes.CDLL(None)
    try:
        sys.exit({call} != -1)
    except OSError:
        sys.exit(0)
    """
    assert hostile(script).ok


@pytest.mark.calls_are_filtered
def test_cuda_has_no_file_without_a_name_either(hostile) -> None:
    script = """
    import errno, os
    try:
        os.memfd_create("x")
    except OSError as error:
        print(error.errno == errno.ENOSYS)
    """
    assert hostile(script, devices=True).stdout == "True\n"


def test_of_a_namespace_no_other_process_of_the_machine_is_read(
    hostile, monkeypatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("machine: an ordinary user may not look into a namespace")
    read, looked = [], supervise._stats
    monkeypatch.setattr(
        supervise, "_stats", lambda f: read.append(looked(f)) or read[-1]
    )
    hostile("import time; time.sleep(0.5)", limits=Limits(wall_seconds=10))
    # bubblewrap's own and the script; before its /proc is there all of the machine's
    assert 1 <= len(read[-1]) <= 3


@pytest.mark.calls_are_filtered
def test_the_first_process_is_limited_by_no_spelling_of_its_number(hostile) -> None:
    script = """
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    for one in (ctypes.c_ulong(1), ctypes.c_ulong(1 << 32 | 1)):
        for call in ((302, one, 7), (203, one), (144, one), (141, 0, one), (251, 1, one)):
            assert libc.syscall(*call, None, None, None) == -1
            print(ctypes.get_errno(), end=" ")
    """
    assert hostile(script).stdout == "1 " * 10
