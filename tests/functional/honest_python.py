"""Habits of honest solutions that are of torch's interfaces, and of Python."""

from __future__ import annotations

from tests.functional.habit import Habit, module
from tests.functional.hacks import fills, run

OF_PYTHON = (
    Habit(
        "torch.jit.script",
        module(
            "@torch.jit.script\n"
            "def run(x, weight):\n"
            "    a = x.float()\n"
            "    a = a * torch.rsqrt(a.square().mean(dim=-1, keepdim=True) + 1e-06)\n"
            "    return (a * weight.float()).to(torch.bfloat16)"
        ),
    ),
    Habit(
        "torch.jit.trace",
        module(
            "made = torch.ones(2, 128, dtype=torch.bfloat16)\n"
            "run = torch.jit.trace(norm, (made, made[0]))"
        ),
    ),
    Habit(
        "vmap over rows",
        module(
            "def row(x, weight):\n"
            "    a = x.float()\n"
            "    return a * torch.rsqrt(a.square().mean() + 1e-06) * weight.float()\n\n"
            "def run(x, weight):\n"
            "    return torch.vmap(row, in_dims=(0, None))(x, weight).to(x.dtype)"
        ),
    ),
    Habit(
        "a module called with other parameters",
        module(
            "class Norm(torch.nn.Module):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        self.weight = torch.nn.Parameter(torch.ones(128))\n"
            "    def forward(self, x):\n"
            "        return norm(x, self.weight)\n\n"
            "MODULE = Norm()\n\n"
            "def run(x, weight):\n"
            "    return torch.func.functional_call(MODULE, {'weight': weight}, (x,))"
        ),
    ),
    Habit(
        "context variables",
        "import contextvars\n"
        + module(
            "EPS = contextvars.ContextVar('eps', default=1e-06)\n\n"
            "def run(x, weight):\n"
            "    return contextvars.copy_context().run(lambda: norm(x, weight))"
        ),
    ),
    Habit(
        "a cache of what is no tensor",
        "from functools import lru_cache\n"
        + module(
            "@lru_cache\ndef block(n):\n    return max(1, n // 2)\n\n"
            "def run(x, weight):\n"
            "    parts = x.split(block(x.shape[0]))\n"
            "    return torch.cat([norm(p, weight) for p in parts])"
        ),
    ),
    Habit(
        "a cache of weak references",
        "import weakref\n"
        + module(
            "KNOWN = weakref.WeakValueDictionary()\n\n"
            "def run(x, weight):\n"
            "    KNOWN[tuple(weight.shape)] = weight\n"
            "    return norm(x, weight)"
        ),
    ),
    Habit(
        "generators",
        run("return torch.stack([*(norm(row, weight) for row in x)])"),
    ),
    Habit(
        "the C library by ctypes",
        "import ctypes\n"
        + fills(
            "y = norm(x, weight).contiguous()\n"
            "ctypes.CDLL(None).memcpy(ctypes.c_void_p(out.data_ptr()),\n"
            "    ctypes.c_void_p(y.data_ptr()), ctypes.c_size_t(y.nbytes))"
        ),
        True,
    ),
    Habit(
        "coroutines",
        "import asyncio\n"
        + run("async def later(): return norm(x, weight)\nreturn asyncio.run(later())"),
    ),
    Habit(
        "a file of its own, mapped",
        "import numpy, tempfile\n"
        + run(
            "with tempfile.NamedTemporaryFile() as file:\n"
            "    y = norm(x, weight).float().numpy()\n"
            "    mapped = numpy.memmap(file, 'float32', 'w+', shape=y.shape)\n"
            "    mapped[:] = y\n"
            "    return torch.from_numpy(numpy.array(mapped)).to(x.dtype)"
        ),
    ),
    Habit(
        "shared memory by name",
        "from multiprocessing.shared_memory import SharedMemory\n"
        + run(
            "memory = SharedMemory(create=True, size=x.numel() * 2)\n"
            "y = torch.frombuffer(memory.buf, dtype=x.dtype, count=x.numel())\n"
            "z = y.view(x.shape).copy_(norm(x, weight)).clone()\n"
            "del y\n"
            "memory.close()\n"
            "memory.unlink()\n"
            "return z"
        ),
    ),
    Habit(
        "tensors in shared memory",
        run("return norm(x, weight).share_memory_()"),
    ),
    Habit(
        "a thread that reports",
        "import threading, time\n"
        + module(
            "def report():\n"
            "    while True: time.sleep(0.001)\n\n"
            "threading.Thread(target=report, daemon=True).start()\n\n"
            "def run(x, weight):\n    return norm(x, weight)"
        ),
    ),
    Habit(
        "a thread that is busy",
        "import threading\n"
        + module(
            "def count():\n"
            "    n = 0\n"
            "    while True: n += 1\n\n"
            "threading.Thread(target=count, daemon=True).start()\n\n"
            "def run(x, weight):\n    return norm(x, weight)"
        ),
    ),
    Habit(
        "a default dtype while it computes",
        run(
            "before = torch.get_default_dtype()\n"
            "torch.set_default_dtype(torch.float64)\n"
            "y = norm(x, weight)\n"
            "torch.set_default_dtype(before)\n"
            "return y"
        ),
    ),
    Habit(
        "a dispatch mode",
        "from torch.utils._python_dispatch import TorchDispatchMode\n"
        + module(
            "class Count(TorchDispatchMode):\n"
            "    def __torch_dispatch__(self, f, types, args=(), kwargs=None):\n"
            "        return f(*args, **(kwargs or {}))\n\n"
            "def run(x, weight):\n"
            "    with Count(): return norm(x, weight)"
        ),
    ),
    Habit(
        "autocast that is off",
        run("with torch.autocast('cpu', enabled=False):\n    return norm(x, weight)"),
    ),
    Habit(
        "a generator of its own",
        run(
            "torch.randn(4, generator=torch.Generator().manual_seed(3))\n"
            "return norm(x, weight)"
        ),
    ),
    Habit(
        "collection of garbage",
        "import gc\n" + run("gc.disable()\ngc.collect()\nreturn norm(x, weight)"),
    ),
    Habit(
        "an alarm that is cleared",
        "import signal\n"
        + run(
            "signal.setitimer(signal.ITIMER_REAL, 60)\n"
            "y = norm(x, weight)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0)\n"
            "return y"
        ),
    ),
    Habit(
        "lines on stdout",
        "import logging, sys\n"
        + run(
            "print('a call'); sys.stderr.write('a call'); logging.error('a call')\n"
            "return norm(x, weight)"
        ),
    ),
    Habit(
        "a nicer process",
        "import os\n"
        + module("os.nice(1)\n\ndef run(x, weight):\n    return norm(x, weight)"),
    ),
    Habit(
        "torch's own operator",
        run(
            "return torch.nn.functional.rms_norm(x.float(), (128,), weight.float(), 1e-06).to(x.dtype)"
        ),
    ),
)
