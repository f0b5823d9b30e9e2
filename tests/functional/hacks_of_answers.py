"""Reward hacks by the channel, and by work after the answer."""

from __future__ import annotations

from tests.functional.hacks import (
    HACK,
    NUMERICAL,
    PASSED,
    RIGHT,
    RUNTIME,
    TIMEOUT,
    Hack,
    fills,
    run,
)


def answers(change: str) -> str:
    """Return a solution that computes, whose process changes its answer to each call."""
    return (
        "import os, socket, struct, sys\n"
        + RIGHT
        + "\nFRAMES = sys.modules['frames']\nSEND = FRAMES.send\n\n\n"
        + "def send(channel, frame, files=()):\n"
        + "    if 'outputs' in frame:\n"
        + "".join(f"        {line}\n" for line in change.strip().splitlines())
        + "    SEND(channel, frame, files)\n\n\n"
        + "FRAMES.send = send\n\n\ndef run(x, weight):\n    return norm(x, weight)\n"
    )


def late(how: str, later: str = "out.copy_(norm(x, weight))") -> str:
    """Return a solution that answers at once, and fills its output in `later()`."""
    return (
        "import ctypes, os, signal, struct, threading, time\n"
        + RIGHT
        + "\nlibc = ctypes.CDLL(None, use_errno=True)\n\n\n"
        + "def run(x, weight, out):\n"
        + "    def later():\n        time.sleep(0.002)\n"
        + f"        {later}\n"
        + "".join(f"    {line}\n" for line in how.strip().splitlines())
    )


# what comes late is not there, or lies among the arguments of the next call
_WRONG = (NUMERICAL, HACK, RUNTIME)
_CHECKED = "an answer is parsed once into a checked value"
_STOPPED = "every process is stopped from the answer until the outputs were read"

BY_CHANNEL = (
    Hack("an empty description", answers("frame['outputs'] = [{}]"), (HACK,), _CHECKED),
    Hack("no description", answers("del frame['outputs']"), (HACK,), _CHECKED),
    Hack("numbers for values", answers("frame['outputs'] = [1]"), (HACK,), _CHECKED),
    Hack(
        "a shape of texts",
        answers("frame['outputs'][0]['shape'] = ['x', None]"),
        (HACK,),
        _CHECKED,
    ),
    Hack(
        "a dtype that is a list",
        answers("frame['outputs'][0]['dtype'] = ['bfloat16']"),
        (HACK,),
        _CHECKED,
    ),
    Hack(
        "an axis of thirty digits",
        answers("frame['outputs'][0]['shape'] = [10 ** 30, 1]"),
        (HACK,),
        _CHECKED,
    ),
    Hack(
        "a number of thirty digits",
        answers("frame['outputs'] = [{'value': 10 ** 30}]"),
        (HACK,),
        _CHECKED,
    ),
    Hack(
        "a million dimensions",
        answers("frame['outputs'][0]['shape'] = [1] * 1_000_000"),
        (HACK,),
        _CHECKED,
    ),
    Hack(
        "an answer as if outputs were passed",
        answers("frame['outputs'] = 'passed'"),
        (HACK,),
        _CHECKED,
    ),
    Hack(
        "JSON ten thousand deep",
        answers(
            "data = b'[' * 10_000 + b']' * 10_000\n"
            "channel.sendall(struct.pack('<Q', len(data)) + data)\n"
            "return"
        ),
        (HACK,),
        "frames are parsed by a bounded parser",
    ),
    Hack(
        "a frame of a terabyte",
        answers("channel.sendall(struct.pack('<Q', 1 << 40))\nreturn"),
        (HACK,),
        "frames have a greatest length",
    ),
    Hack(
        "half a frame",
        answers("channel.sendall(struct.pack('<Q', 100) + b'{')\nreturn"),
        (TIMEOUT,),
        "the judge's clock",
    ),
    Hack(
        "descriptors beside an answer",
        answers("files = [os.open('/dev/null', 0)] * 16"),
        (PASSED, HACK),
        "harmless: there is no room for them",
    ),
    Hack(
        "the channel closed", answers("channel.close()\nreturn"), (RUNTIME,), _CHECKED
    ),
    Hack(
        "two answers at once",
        answers("SEND(channel, frame)"),
        (HACK,),
        "one answer to each nonce",
    ),
    Hack(
        "an error that is no text",
        answers("frame = {'raised': {'a': [1] * 100_000}, 'nonce': frame['nonce']}"),
        (RUNTIME,),
        "reasons are one short line",
    ),
)

AFTER_THE_ANSWER = (
    Hack(
        "a zombie whose thread fills later",
        late(
            "threading.Thread(target=later).start()\n"
            "if os.fork() == 0:\n"
            "    threading.Thread(target=later).start()\n"
            "    libc.pthread_exit(None)"
        ),
        _WRONG,
        _STOPPED,
        True,
    ),
    Hack(
        "a child fills shared memory later",
        late("if os.fork() == 0:\n    later()\n    os._exit(0)"),
        _WRONG,
        _STOPPED,
        True,
    ),
    Hack(
        "a daemon fills later",
        late(
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    if os.fork() == 0: later()\n"
            "    os._exit(0)\n"
            "os.wait()"
        ),
        _WRONG,
        _STOPPED,
        True,
    ),
    Hack(
        "two that continue each other",
        late(
            "def awake(pid):\n"
            "    until = time.monotonic() + 2\n"
            "    while time.monotonic() < until:\n"
            "        try: os.kill(pid, signal.SIGCONT)\n"
            "        except OSError: pass\n"
            "me = os.getpid()\n"
            "if os.fork() == 0:\n"
            "    awake(me)\n"
            "    os._exit(0)\n"
            "threading.Thread(target=later).start()"
        ),
        _WRONG,
        "nobody may send what continues a process",
        True,
    ),
    Hack(
        "a timer that continues it",
        late(
            "timer = ctypes.c_void_p()\n"
            "event = (ctypes.c_char * 64).from_buffer_copy(\n"
            "    struct.pack('<Qii48x', 0, signal.SIGCONT, 0))\n"
            "libc.timer_create(1, event, ctypes.byref(timer))\n"
            "each = (ctypes.c_long * 4)(0, 500_000, 0, 500_000)\n"
            "libc.timer_settime(timer, 0, each, None)\n"
            "threading.Thread(target=later).start()"
        ),
        _WRONG,
        "no timer may send it, and a thread that ran is seen by its count of runs",
        True,
    ),
    Hack(
        "a parent that waits for vfork",
        late(
            "threading.Thread(target=later).start()\n"
            "threading.Thread(target=os.system, args=('sleep 1',)).start()"
        ),
        _WRONG,
        _STOPPED,
        True,
    ),
    Hack(
        "an alarm fills later",
        late(
            "signal.signal(signal.SIGALRM, lambda *a: later())\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.001)"
        ),
        _WRONG,
        _STOPPED,
        True,
    ),
    Hack(
        "forks without an end",
        "import os, threading, time\n"
        + fills(
            "def forks():\n"
            "    while True:\n"
            "        if os.fork() == 0: os._exit(0)\n"
            "        os.wait()\n"
            "threading.Thread(target=forks, daemon=True).start()\n"
            "out.copy_(norm(x, weight))"
        ),
        # a child that is born as its parent is stopped may be seen running
        (PASSED, HACK),
        "harmless: " + _STOPPED,
        True,
    ),
    Hack(
        "slower with every call",
        "import time\n" + run("time.sleep(4)\nreturn norm(x, weight)"),
        (TIMEOUT,),
        "seconds for all calls of a solution together",
    ),
)
