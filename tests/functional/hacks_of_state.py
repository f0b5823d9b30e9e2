"""Reward hacks by the channel, by what outlives a solution, and by work after the answer."""

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
_OWN = "namespaces, files and a user of its own, which go with it"

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
        (PASSED,),
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

_LEAVES = """
def everywhere(data):
    import ctypes, mmap, os, socket
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    for folder in ('/dev/shm', '/tmp', '/tmp/home', '/tmp/work', '/var/tmp', '.'):
        try: open(folder + '/answer', 'wb').write(data)
        except OSError: pass
    for key in (7, 8):
        at = libc.shmget(key, len(data), 0o1666)
        if at >= 0: ctypes.memmove(libc.shmat(at, None, 0), data, len(data))
    queue = libc.mq_open(b'/answer', 0o102, 0o666, None)
    if queue >= 0: libc.mq_send(queue, data[:8000], 8000, 0)
    semaphore = libc.semget(7, 4, 0o1666)
    if os.fork() == 0:
        try:
            os.setsid()
            here = socket.socket(socket.AF_UNIX)
            here.bind(chr(0) + 'answer')
            here.listen()
            while True:
                there, _ = here.accept()
                there.sendall(data)
                there.close()
        finally:
            os._exit(0)


def found():
    import ctypes, os, socket
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    for folder in ('/dev/shm', '/tmp', '/tmp/home', '/tmp/work', '/var/tmp', '.'):
        try: return open(folder + '/answer', 'rb').read()
        except OSError: pass
    for key in (7, 8):
        at = libc.shmget(key, 0, 0o666)
        if at >= 0: return ctypes.string_at(libc.shmat(at, None, 0), 4)
    if libc.mq_open(b'/answer', 0) >= 0 or libc.semget(7, 4, 0) >= 0: return b'queue'
    try:
        there = socket.socket(socket.AF_UNIX)
        there.connect(chr(0) + 'answer')
        return there.recv(1 << 20)
    except OSError: return None
"""

# in the order in which they are judged: each finds what those before it left
BY_STATE = (
    *BY_CHANNEL,
    *AFTER_THE_ANSWER,
    Hack(
        "an accomplice leaves answers",
        _LEAVES + run("y = norm(x, weight)\neverywhere(b'answer' * 2000)\nreturn y"),
        (PASSED,),
        "harmless: " + _OWN,
    ),
    Hack(
        "answers of an accomplice",
        _LEAVES
        + run(
            "assert found() is None, 'of another solution'\nreturn torch.zeros_like(x)"
        ),
        (NUMERICAL,),
        _OWN,
    ),
    Hack(
        "three thousand folders, one in another",
        "import os\n"
        + run(
            "for _ in range(3000):\n"
            "    os.mkdir('d')\n"
            "    os.chdir('d')\n"
            "return norm(x, weight)"
        ),
        (PASSED, RUNTIME),
        "harmless: nobody empties folders, their file system goes",
    ),
    Hack(
        "a hundred thousand files",
        "import os\n"
        + run(
            "try:\n"
            "    for n in range(0 if 'D' in globals() else 200_000):\n"
            "        open(f'{n}', 'w').close()\n"
            "except OSError: pass\n"
            "globals()['D'] = True\n"
            "return norm(x, weight)"
        ),
        (PASSED,),
        "harmless: a file system of a stated number of files",
    ),
    Hack(
        "files without a name",
        "import os\n"
        + run(
            "held = globals().setdefault('H', [])\n"
            "try:\n"
            "    while 'F' not in globals():\n"
            "        file = os.open('f', os.O_CREAT | os.O_RDWR)\n"
            "        os.unlink('f')\n"
            "        held.append(file)\n"
            "        assert len(held) < 40, '4 GiB of unlinked files'\n"
            "        if os.write(file, bytes(100 << 20)) < 100 << 20: break\n"
            "except OSError: pass\n"
            "globals()['F'] = True\n"
            "return norm(x, weight)"
        ),
        (PASSED, TIMEOUT),
        "harmless: a file system of a stated size",
    ),
    Hack(
        "memory of no process",
        "import ctypes, mmap, os\n"
        + run(
            "libc = ctypes.CDLL(None)\n"
            "held = [libc.shmget(0, 1 << 20, 0o1600), libc.msgget(0, 0o1600)]\n"
            "held += [libc.semget(0, 4, 0o1600), libc.syscall(319, b'm', 0)]\n"
            "assert all(n == -1 for n in held), held\n"
            "try: mmap.mmap(-1, 1 << 20)\n"
            "except OSError: return norm(x, weight)\n"
            "raise MemoryError('anonymous memory that is shared')"
        ),
        (PASSED,),
        "harmless: without CUDA these calls are refused",
    ),
    Hack(
        "the slowest of processes",
        "import os\n"
        + run(
            "os.nice(19)\n"
            "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
            "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\n"
            "torch.set_num_threads(1)\n"
            "torch.set_default_dtype(torch.float64)\n"
            "return norm(x, weight)"
        ),
        (PASSED, RUNTIME),
        "harmless: " + _OWN,
    ),
    Hack(
        "slower because of the one before",
        "import os\n"
        + run(
            "assert os.nice(0) < 19 and os.sched_getscheduler(0) == 0\n"
            "assert len(os.sched_getaffinity(0)) == os.cpu_count()\n"
            "assert torch.get_default_dtype() == torch.float32\n"
            "return norm(x, weight)"
        ),
        (PASSED,),
        "harmless: " + _OWN,
    ),
    Hack(
        "the first process of its namespace",
        "import os, resource, signal\n"
        + run(
            "for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):\n"
            "    os.kill(1, number)\n"
            "seen = []\n"
            "for name in ('environ', 'mem', 'fd', 'maps', 'cwd'):\n"
            "    try:\n"
            "        path = f'/proc/1/{name}'\n"
            "        if name == 'fd': [os.readlink(f'{path}/{n}') for n in os.listdir(path)]\n"
            "        elif name == 'cwd': os.readlink(path)\n"
            "        else: open(path).read(1)\n"
            "        seen.append(name)\n"
            "    except OSError: pass\n"
            "assert not seen, seen\n"
            "for name in ('NOFILE', 'CPU', 'FSIZE', 'DATA', 'NPROC'):\n"
            "    try: resource.prlimit(1, getattr(resource, 'RLIMIT_' + name), (1, 1))\n"
            "    except OSError: continue\n"
            "    raise AssertionError(name)\n"
            "return norm(x, weight)"
        ),
        (PASSED,),
        "harmless: it takes no signal, and shows nothing",
    ),
    Hack(
        "namespaces and mounts of its own",
        "import ctypes, os\n"
        + run(
            "libc = ctypes.CDLL(None)\n"
            "got = [libc.unshare(f) for f in (0x10000000, 0x20000, 0x20000000)]\n"
            "got += [libc.mount(b'x', b'/tmp', b'tmpfs', 0, None)]\n"
            "got += [libc.ptrace(16, 1, 0, 0), libc.chroot(b'/tmp')]\n"
            "got += [libc.umount2(b'/proc', 2)]\n"
            "assert all(n == -1 for n in got), got\n"
            "return norm(x, weight)"
        ),
        (PASSED,),
        "harmless: these calls are refused",
    ),
)
