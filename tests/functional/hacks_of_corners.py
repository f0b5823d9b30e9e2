"""Reward hacks by errors, answers and system calls that look like others."""

from __future__ import annotations

from tests.functional.hacks import (
    DTYPE,
    HACK,
    PASSED,
    RIGHT,
    RUNTIME,
    SHAPE,
    TIMEOUT,
    Hack,
    run,
)
from tests.functional.hacks_of_answers import _WRONG, answers, late
from tests.functional.hacks_of_machine import _CALLS, refused, tries

_BYTES = "bytes are copied from a plain tensor of the declared shape"
_ENDS = "an error is one short line, made in its own process and on its own time"
_CHECKED = "an answer is parsed once into a checked value"
_MEMORY = "OUT_OF_MEMORY"


def raises(kind: str, before: str = "") -> str:
    """Return a solution that raises an error of a class whose body is given."""
    lines = "".join(f"    {line}\n" for line in kind.strip().splitlines())
    return f"{before}class Odd(Exception):\n{lines}\n\n" + run("raise Odd('odd')")


def sends(data: str) -> str:
    """Return a solution whose answers to calls are made of `text` by an expression."""
    return answers(
        "import json\n"
        "text = json.dumps(frame)\n"
        f"data = {data}\n"
        "channel.sendall(struct.pack('<Q', len(data)) + data)\n"
        "return"
    )


BY_ERRORS = (
    Hack(
        "an error whose text never ends",
        raises("def __str__(self):\n    while True: pass"),
        (TIMEOUT,),
        _ENDS,
    ),
    Hack(
        "an error whose text is an error",
        raises("def __str__(self): raise self"),
        (RUNTIME,),
        _ENDS,
    ),
    Hack(
        "an error of halves of characters and commands",
        raises(
            "def __str__(self):\n"
            "    return '\\ud800\\x1b[2J\\u202e\\r\\n##[error]x\\n::error::x' * 40"
        ),
        (RUNTIME,),
        _ENDS,
    ),
    Hack(
        "an error with a name of two megabytes",
        raises("pass").replace(
            "\n\ndef run", "\n\nOdd.__name__ = 'O' * (2 << 20)\n\n\ndef run"
        ),
        (HACK, RUNTIME),
        "an answer has a greatest length",
    ),
    Hack(
        "an error of twenty thousand frames",
        "import sys\n"
        + RIGHT
        + "\n\ndef down(n):\n    if n == 0: raise ValueError('deep')\n    down(n - 1)\n\n\n"
        + "def run(x, weight):\n    sys.setrecursionlimit(200_000)\n    down(20_000)\n",
        (RUNTIME, TIMEOUT),
        _ENDS,
    ),
    Hack(
        "an error in a line of a pipe",
        "import os\n"
        + run(
            "name = os.path.join(os.path.dirname(__file__), 'pipe')\n"
            "os.path.exists(name) or os.mkfifo(name)\n"
            "exec(compile('raise ValueError(1)', name, 'exec'))"
        ),
        (TIMEOUT, RUNTIME),
        _ENDS,
    ),
    Hack(
        "an error that says there is no memory",
        run("raise RuntimeError('out of memory')"),
        (_MEMORY,),
        "a case without an answer has not passed, whatever it says",
    ),
    Hack(
        "a dump of its threads that ends it",
        "import faulthandler, time\n"
        + run(
            "faulthandler.dump_traceback_later(0.001, exit=True)\n"
            "time.sleep(0.1)\nreturn norm(x, weight)"
        ),
        (RUNTIME,),
        "each call needs its answer",
    ),
)

BY_ANSWERS = (
    Hack(
        "an answer that is no UTF-8",
        sends('b\'{"outputs": "\\xff\\xfe\\xfd"}\''),
        (HACK,),
        "frames are parsed by a bounded parser",
    ),
    Hack(
        "an answer in UTF-16, of other values",
        sends("text.replace('bfloat16', 'float32').encode('utf-16')"),
        (DTYPE, HACK),
        _CHECKED,
    ),
    Hack(
        "names that come twice",
        sends('(text[:-1] + \', "outputs": "passed"}\').encode()'),
        (HACK,),
        _CHECKED,
    ),
    Hack(
        "numbers that JSON has not",
        sends(
            "text.replace('[{', '[{\"value\": NaN}, {\"value\": -Infinity, ').encode()"
        ),
        (HACK, SHAPE),
        _CHECKED,
    ),
    Hack(
        "signals that write to the channel",
        answers(
            "import signal\n"
            "os.set_blocking(channel.fileno(), False)\n"
            "signal.set_wakeup_fd(channel.fileno(), warn_on_full_buffer=False)\n"
            "signal.signal(signal.SIGALRM, lambda *a: None)\n"
            "signal.raise_signal(signal.SIGALRM)"
        ),
        (HACK, RUNTIME),
        "frames with a length and a nonce",
    ),
    Hack(
        "descriptors with each byte of an answer",
        answers(
            "import json, time\n"
            "data = json.dumps(frame).encode()\n"
            "data = struct.pack('<Q', len(data)) + data\n"
            "many = [os.open('/dev/null', 0)] * 16\n"
            "for byte in data:\n"
            "    while True:\n"
            "        try: socket.send_fds(channel, [bytes([byte])], many)\n"
            "        except OSError: time.sleep(0.001)\n"
            "        else: break\n"
            "os.close(many[0])\n"
            "return"
        ),
        (PASSED,),
        "harmless: there is no room for them",
    ),
    Hack(
        "a channel that is read no more",
        answers("SEND(channel, frame)\nchannel.shutdown(socket.SHUT_RD)\nreturn"),
        (RUNTIME, HACK),
        "the judge's clock, and the end of its channel",
    ),
)

_CLONED = """
import ctypes, mmap, struct, time

SPACE = mmap.mmap(-1, 1 << 16, flags=0x22, prot=7)
AT = ctypes.addressof(ctypes.c_char.from_buffer(SPACE))
# while (1) *(long *)rdi += 1;
SPACE[:6] = bytes.fromhex('48ff07ebfb90')


"""

BY_CALLS = (
    Hack(
        "the first process by another number",
        tries(
            "first = ctypes.c_ulong(1 << 32 | 1)\n"
            "space = ctypes.create_string_buffer(bytes(8), 128)\n"
            + refused(
                "((203, first, 8, space), (144, first, 5, space), (142, first, space),"
                " (314, first, space, 0), (302, first, 7, space, None),"
                " (141, 0, first, 19), (251, 1, first, 3 << 13))"
            )
        ),
        (PASSED,),
        _CALLS,
    ),
    Hack(
        "what the kernel keeps of the first process",
        tries(
            "names = ('oom_score_adj', 'timerslack_ns', 'coredump_filter', 'comm', 'autogroup',\n"
            "         'sched', 'clear_refs', 'mem', 'uid_map', 'setgroups', 'attr/current')\n"
            "for name in names:\n"
            "    try: os.write(os.open(f'/proc/1/{name}', os.O_WRONLY), b'0')\n"
            "    except OSError: continue\n"
            "    raise AssertionError(name)"
        ),
        (PASSED,),
        "harmless: it shows nothing, and nothing of it can be written",
    ),
    Hack(
        "before all others",
        tries(
            "for policy in (os.SCHED_FIFO, os.SCHED_RR):\n"
            "    try: os.sched_setscheduler(0, policy, os.sched_param(1))\n"
            "    except OSError: continue\n"
            "    raise AssertionError(policy)\n"
            "import struct\n"
            "how = struct.pack('<IIQiIQQQ', 48, 6, 0, 0, 0, 9 * 10**6, 10**7, 10**7)\n"
            + refused("((314, 0, how, 0), (141, 0, 0, ctypes.c_long(-20)))").replace(
                "(1, 38)", "(1, 13, 38)"
            )
        ),
        (PASSED,),
        "harmless: it has no rights",
    ),
    Hack(
        "a process that has its memory",
        _CLONED
        + late(
            "stack = ctypes.c_void_p(AT + (1 << 16) - 64)\n"
            "place = ctypes.c_void_p(out.data_ptr())\n"
            "out.copy_(norm(x, weight))\n"
            "libc.clone(ctypes.c_void_p(AT), stack, 0x111, place)"
        ),
        _WRONG,
        "every process is stopped from the answer until the outputs were read",
        True,
    ),
    Hack(
        "a child whose end continues its parent",
        late(
            "if libc.syscall(56, signal.SIGCONT, 0, 0, 0, 0) == 0:\n"
            "    time.sleep(0.001)\n"
            "    os._exit(0)\n"
            "threading.Thread(target=later).start()"
        ),
        _WRONG,
        "a thread that ran is seen by its count of runs",
        True,
    ),
    Hack(
        "calls of another table",
        tries("libc.syscall(0x40000000 + 101, 16, 1, 0, 0)"),
        (RUNTIME, PASSED),
        "a call by another table ends the process, or is none",
    ),
    Hack(
        "the memory of its arguments cut off",
        "import ctypes, fcntl, mmap, os, sys\n"
        + RIGHT
        + "\nFRAMES, KEPT = sys.modules['frames'], []\nRECEIVE = FRAMES.receive\n\n\n"
        + "def receive(*given):\n"
        + "    frame, files = RECEIVE(*given)\n"
        + "    KEPT.extend(map(os.dup, files))\n"
        + "    return frame, files\n\n\n"
        + "FRAMES.receive = receive\n\n\n"
        + "def run(x, weight):\n"
        + "    assert KEPT\n"
        + "    for file in KEPT:\n"
        + "        for cut in (lambda: os.ftruncate(file, 0),\n"
        + "                    lambda: os.truncate(f'/proc/self/fd/{file}', 0),\n"
        + "                    lambda: os.open(f'/proc/self/fd/{file}', os.O_RDWR | os.O_TRUNC),\n"
        + "                    lambda: os.ftruncate(file, 1 << 40),\n"
        + "                    lambda: fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)):\n"
        + "            try: cut()\n"
        + "            except OSError: continue\n"
        + "            raise AssertionError(cut)\n"
        + "    return norm(x, weight)\n",
        (PASSED,),
        "harmless: the memory is sealed",
    ),
    Hack(
        "modules and settings for what starts later",
        "import os\n"
        + run(
            "home = os.environ['HOME']\n"
            "site = f'{home}/.local/lib/python3.11/site-packages'\n"
            "for folder in ('.', home, '/tmp', '/dev/shm', site, f'{home}/.config'):\n"
            "    os.makedirs(folder, exist_ok=True)\n"
            "    for name in ('torch', 'json', 'frames', 'usercustomize', 'sitecustomize'):\n"
            "        open(f'{folder}/{name}.py', 'w').write('raise SystemExit(0)')\n"
            "    open(f'{folder}/all.pth', 'w').write('import os; os._exit(0)')\n"
            "os.environ |= {'PYTHONPATH': '/tmp', 'LD_PRELOAD': '/tmp/x.so', 'PYTHONSTARTUP': '/tmp/json.py'}\n"
            "return norm(x, weight)"
        ),
        (PASSED,),
        "harmless: files and environment of its own, which go with it",
    ),
    Hack(
        "modules and settings of the one before",
        "import os\n"
        + run(
            "for folder in ('.', os.environ['HOME'], '/tmp', '/dev/shm'):\n"
            "    assert not [n for n in os.listdir(folder) if n.endswith(('.py', '.pth'))]\n"
            "assert 'PYTHONPATH' not in os.environ and 'LD_PRELOAD' not in os.environ\n"
            "return norm(x, weight)"
        ),
        (PASSED,),
        "harmless: files and environment of its own, which go with it",
    ),
    Hack(
        "no room for what comes next",
        "import resource\n"
        + run(
            "resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))\n"
            "resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))\n"
            "return norm(x, weight)"
        ),
        (PASSED, RUNTIME, _MEMORY, HACK),
        "limits of its own reach its own processes alone",
    ),
)
