"""Forms in which solutions come, each right: all PASSED."""

from __future__ import annotations

from tests.functional.habit import Habit, module
from tests.functional.hacks import RIGHT, run

OF_FORM = (
    Habit(
        "a compiled kernel kept by shape",
        "import functools\n"
        + module(
            "@functools.cache\n"
            "def kernel(rows, width):\n"
            "    return torch.compile(norm, backend='eager')\n"
            "\n"
            "\n"
            "def run(x, weight):\n"
            "    return kernel(*x.shape)(x, weight)"
        ),
    ),
    Habit(
        "modules imported in the call",
        run(
            "import decimal, importlib, fractions, sqlite3, numpy\n"
            "importlib.import_module('torch.nn.functional')\n"
            "return norm(x, weight)"
        ),
    ),
    Habit(
        "in place on clones",
        run(
            "y = x.clone().float()\n"
            "y.mul_(torch.rsqrt(y.square().mean(-1, keepdim=True).add_(1e-06)))\n"
            "y.mul_(weight.float())\n"
            "return y.to(x.dtype)"
        ),
    ),
    Habit(
        "a decorated run with keywords",
        module(
            "import functools\n"
            "def timed(f):\n"
            "    @functools.wraps(f)\n"
            "    def g(*a, **k): return f(*a, **k)\n"
            "    return g\n"
            "\n"
            "@timed\n"
            "def run(x, weight, *, eps=1e-06, block: int = 128):\n"
            "    return norm(x, weight)"
        ),
    ),
    Habit(
        "optional parameters behind the declared",
        module(
            "def run(hidden_states, weight, eps=1e-06, out=None):\n"
            "    return norm(hidden_states, weight)"
        ),
    ),
    Habit(
        "a loop of coroutines in a thread",
        "import asyncio, threading\n"
        + module(
            "LOOP = asyncio.new_event_loop()\n"
            "threading.Thread(target=LOOP.run_forever, daemon=True).start()\n"
            "async def work(x, w): return norm(x, w)\n"
            "\n"
            "def run(x, weight):\n"
            "    return asyncio.run_coroutine_threadsafe(work(x, weight), LOOP).result()"
        ),
    ),
    Habit(
        "a queue to a thread that is kept",
        "import queue, threading\n"
        + module(
            "IN, OUT = queue.Queue(), queue.Queue()\n"
            "def serve():\n"
            "    while True: OUT.put(norm(*IN.get()))\n"
            "threading.Thread(target=serve, daemon=True).start()\n"
            "\n"
            "def run(x, weight):\n"
            "    IN.put((x, weight))\n"
            "    return OUT.get()"
        ),
    ),
    Habit(
        "a dataclass of settings",
        "from dataclasses import dataclass, field\n"
        + module(
            "@dataclass(frozen=True, slots=True)\n"
            "class Config:\n"
            "    eps: float = 1e-06\n"
            "    tables: dict = field(default_factory=dict)\n"
            "\n"
            "CONFIG = Config()\n"
            "\n"
            "\n"
            "def run(x, weight):\n"
            "    return norm(x, weight)"
        ),
    ),
    Habit(
        "an operator that is missing, another way taken",
        run(
            "try:\n"
            "    return torch.ops.mine.missing(x)\n"
            "except (AttributeError, RuntimeError):\n"
            "    return norm(x, weight)"
        ),
    ),
    Habit(
        "warnings as errors",
        "import warnings\n"
        "warnings.simplefilter('error')\n" + run("return norm(x, weight)"),
    ),
    Habit(
        "a log of its own",
        "import logging, logging.handlers\n"
        + module(
            "L = logging.getLogger('k')\n"
            "L.addHandler(logging.handlers.RotatingFileHandler('k.log', maxBytes=1000, backupCount=2))\n"
            "L.setLevel(10)\n"
            "\n"
            "def run(x, weight):\n"
            "    L.debug('rows %d', len(x))\n"
            "    return norm(x, weight)"
        ),
    ),
    Habit(
        "a tensor that needs a gradient, returned as it is",
        run(
            "with torch.enable_grad():\n"
            "    w = weight.float().requires_grad_()\n"
            "    return (x.float() * torch.rsqrt(x.float().square().mean(-1, True) + 1e-06) * w).to(x.dtype)"
        ),
    ),
    Habit(
        "one of two results in one piece of memory",
        run(
            "y = torch.empty((2, *x.shape), dtype=x.dtype)\n"
            "y[1] = norm(x, weight)\n"
            "return y[1]"
        ),
    ),
    Habit(
        "signals that it handles",
        "import signal\n"
        "signal.signal(signal.SIGTERM, lambda *a: None)\n"
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGCONT, lambda *a: None)\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        + run("return norm(x, weight)"),
    ),
    Habit(
        "standard output redirected",
        "import contextlib, io\n"
        + run(
            "with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
            "    print('x')\n"
            "    return norm(x, weight)"
        ),
    ),
    Habit(
        "a lock file in a temporary folder",
        "import tempfile, fcntl, os\n"
        + run(
            "with tempfile.TemporaryDirectory() as d, open(os.path.join(d, 'lock'), 'w') as f:\n"
            "    fcntl.flock(f, fcntl.LOCK_EX)\n"
            "    return norm(x, weight)"
        ),
    ),
    Habit(
        "functions of C by cffi",
        "import cffi\n"
        + module(
            "F = cffi.FFI()\n"
            "F.cdef('double fabs(double);')\n"
            "C = F.dlopen(None)\n"
            "\n"
            "def run(x, weight):\n"
            "    assert C.fabs(-1.0) == 1.0\n"
            "    return norm(x, weight)"
        ),
        needs="cffi",
    ),
    Habit(
        "a cache that compares all values",
        run(
            "g = globals()\n"
            "k = g.get('K')\n"
            "if k is None or k[0].shape != weight.shape or not torch.equal(k[0], weight):\n"
            "    k = g['K'] = (weight.clone(), weight.float())\n"
            "a = x.float()\n"
            "return (a * torch.rsqrt(a.square().mean(-1, True) + 1e-06) * k[1]).to(x.dtype)"
        ),
    ),
    Habit(
        "a profiler around it",
        run(
            "with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:\n"
            "    y = norm(x, weight)\n"
            "assert p.key_averages()\n"
            "return y"
        ),
    ),
    Habit(
        "a finder of modules",
        "import sys, importlib.abc, importlib.machinery\n"
        + module(
            "class Finder(importlib.abc.MetaPathFinder):\n"
            "    def find_spec(self, name, path, target=None): return None\n"
            "sys.meta_path.insert(0, Finder())\n"
            "\n"
            "\n"
            "def run(x, weight):\n"
            "    return norm(x, weight)"
        ),
    ),
    Habit(
        "letters of other scripts",
        "# -*- coding: utf-8 -*-\n"
        "\x0c"
        "\n"
        "# Größe ≤ √2 日本\n" + run("return norm(x, weight)"),
    ),
    Habit(
        "windows line ends",
        f"{RIGHT}\ndef run(x, weight):\n    return norm(x, weight)\n".replace(
            "\n", "\r\n"
        ),
    ),
    Habit(
        "a byte order mark",
        "\ufeff" + run("return norm(x, weight)"),
    ),
    Habit(
        "any number of arguments",
        module("def run(*args):\n    x, weight = args\n    return norm(x, weight)"),
    ),
    Habit(
        "a bound method",
        module(
            "class K:\n"
            "    def go(self, x, weight):\n"
            "        return norm(x, weight)\n"
            "\n"
            "run = K().go"
        ),
    ),
    Habit(
        "annotations of names that are not there",
        "from __future__ import annotations\n"
        "import sys\n"
        + module(
            "def run(x: 'torch.Tensor', weight: Unknown) -> Unknown:\n"
            "    return norm(x, weight)\n"
            "\n"
            "if __name__ == '__main__':\n"
            "    sys.exit(run(torch.ones(1, 128), torch.ones(128)))"
        ),
    ),
)
