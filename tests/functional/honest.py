"""Habits of honest solutions, each a solution of rmsnorm_h128 that is right: all PASSED."""

from __future__ import annotations

from dataclasses import dataclass

from tests.functional.hacks import RIGHT, fills, run


@dataclass(frozen=True)
class Habit:
    """Hold an honest solution; `is_slow` of one that compiles."""

    name: str
    source: str
    passes_outputs: bool = False
    is_slow: bool = False


def _module(text: str) -> str:
    return f"{RIGHT}\n{text.strip()}\n"


HABITS = (
    Habit(
        "torch.compile with inductor",
        _module("run = torch.compile(norm, dynamic=True)"),
        is_slow=True,
    ),
    Habit(
        "torch.compile of graphs alone",
        _module("run = torch.compile(norm, backend='eager', dynamic=True)"),
    ),
    Habit(
        "numpy",
        "import numpy\n"
        + run(
            "a = x.float().numpy()\n"
            "a = a / numpy.sqrt((a * a).mean(-1, keepdims=True) + 1e-06)\n"
            "return torch.from_numpy(a * weight.float().numpy()).to(x.dtype)"
        ),
    ),
    Habit(
        "numpy's own threads",
        "import numpy\n"
        + run(
            "numpy.ones((256, 256)) @ numpy.ones((256, 256))\nreturn norm(x, weight)"
        ),
    ),
    Habit(
        "threads of torch",
        _module(
            "torch.set_num_threads(2)\n\n"
            "def run(x, weight):\n"
            "    torch.ones(1 << 20).exp().sum()\n"
            "    return norm(x, weight)"
        ),
    ),
    Habit(
        "OpenMP in C by ctypes",
        "import ctypes, subprocess\n"
        + _module(
            "C = '''\n"
            "#include <math.h>\n"
            "void norm(const float *x, const float *w, float *y, long n, long h) {\n"
            "  #pragma omp parallel for num_threads(2)\n"
            "  for (long i = 0; i < n; i++) {\n"
            "    float s = 0;\n"
            "    for (long j = 0; j < h; j++) s += x[i*h+j] * x[i*h+j];\n"
            "    float r = 1 / sqrtf(s / h + 1e-6f);\n"
            "    for (long j = 0; j < h; j++) y[i*h+j] = x[i*h+j] * r * w[j];\n"
            "  }\n"
            "}\n"
            "'''\n"
            "open('k.c', 'w').write(C)\n"
            "subprocess.run('cc -O2 -fopenmp -shared -fPIC k.c -o k.so -lm',\n"
            "               shell=True, check=True)\n"
            "LIB = ctypes.CDLL('./k.so')\n\n"
            "def run(x, weight):\n"
            "    a, w = x.float().contiguous(), weight.float().contiguous()\n"
            "    y = torch.empty_like(a)\n"
            "    at = [ctypes.c_void_p(t.data_ptr()) for t in (a, w, y)]\n"
            "    LIB.norm(*at, *map(ctypes.c_long, a.shape))\n"
            "    return y.to(x.dtype)"
        ),
    ),
    Habit(
        "a thread pool that is kept",
        "from concurrent.futures import ThreadPoolExecutor\n"
        + _module(
            "POOL = ThreadPoolExecutor(4)\n\n"
            "def run(x, weight):\n"
            "    parts = POOL.map(lambda row: norm(row, weight), x.split(1))\n"
            "    return torch.cat(list(parts))"
        ),
    ),
    Habit(
        "rows filled by threads",
        "from concurrent.futures import ThreadPoolExecutor\n"
        + fills(
            "pool = ThreadPoolExecutor(3)\n"
            "def fill(i): out[i] = norm(x[i], weight)\n"
            "list(pool.map(fill, range(x.shape[0])))\n"
            "pool.shutdown()"
        ),
        True,
    ),
    Habit(
        "autotuning in the first calls",
        "import time\n"
        + _module(
            "def other(x, weight):\n"
            "    x = x.double()\n"
            "    x = x / (x.square().mean(dim=-1, keepdim=True) + 1e-06).sqrt()\n"
            "    return (x * weight.double()).to(torch.bfloat16)\n\n"
            "TIMES = {norm: [], other: []}\n\n"
            "def run(x, weight):\n"
            "    fewest = min(TIMES, key=lambda f: len(TIMES[f]))\n"
            "    if len(TIMES[fewest]) < 3:\n"
            "        begun = time.perf_counter()\n"
            "        y = fewest(x, weight)\n"
            "        TIMES[fewest].append(time.perf_counter() - begun)\n"
            "        return y\n"
            "    return min(TIMES, key=lambda f: min(TIMES[f]))(x, weight)"
        ),
    ),
    Habit(
        "a sum in order of completion",
        "from concurrent.futures import ThreadPoolExecutor, as_completed\n"
        + run(
            "a, total = x.float(), 0\n"
            "with ThreadPoolExecutor(4) as pool:\n"
            "    parts = [pool.submit(lambda p: p.square().sum(-1, True), p)\n"
            "             for p in a.split(16, dim=-1)]\n"
            "    for done in as_completed(parts): total = total + done.result()\n"
            "y = a * torch.rsqrt(total / a.shape[-1] + 1e-06)\n"
            "return (y * weight.float()).to(x.dtype)"
        ),
    ),
    Habit(
        "a named tuple",
        "from collections import namedtuple\n"
        + run("return namedtuple('Out', 'output')(norm(x, weight))"),
    ),
    Habit("a list", run("return [norm(x, weight)]")),
    Habit(
        "a custom operator",
        _module(
            "@torch.library.custom_op('mine::norm', mutates_args=())\n"
            "def op(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:\n"
            "    return norm(x, weight)\n\n"
            "def run(x, weight):\n    return torch.ops.mine.norm(x, weight)"
        ),
    ),
    Habit(
        "inference mode",
        run("with torch.inference_mode():\n    return norm(x, weight)"),
    ),
    Habit(
        "gradients, then detached",
        run("with torch.enable_grad():\n    return norm(x, weight).detach()"),
    ),
    Habit(
        "a workspace that is kept",
        _module(
            "SPACE = torch.empty(0)\n\n"
            "def run(x, weight):\n"
            "    global SPACE\n"
            "    if SPACE.numel() < x.numel(): SPACE = torch.empty(x.numel())\n"
            "    a = SPACE[:x.numel()].view(x.shape).copy_(x)\n"
            "    a.mul_(torch.rsqrt(a.square().mean(-1, keepdim=True) + 1e-06))\n"
            "    return (a * weight.float()).to(x.dtype)"
        ),
    ),
    Habit(
        "an output buffer that is returned each time",
        _module(
            "KEPT = {}\n\n"
            "def run(x, weight):\n"
            "    y = KEPT.setdefault(x.shape, torch.empty_like(x))\n"
            "    return y.copy_(norm(x, weight))"
        ),
    ),
    Habit("strides of its own", run("return norm(x, weight).t().contiguous().t()")),
    Habit(
        "a part of a wider buffer",
        run(
            "wide = x.new_empty(x.shape[0], x.shape[1] + 8)\n"
            "wide[:, :-8] = norm(x, weight)\n"
            "return wide[:, :-8]"
        ),
    ),
    Habit(
        "a pool of processes, waited for",
        "import multiprocessing\n"
        + _module(
            "def half(parts):\n    return norm(*parts)\n\n"
            "def run(x, weight):\n"
            "    with multiprocessing.get_context('fork').Pool(2) as pool:\n"
            "        parts = pool.map(half, [(p, weight) for p in x.clone().split(2)])\n"
            "        return torch.cat([p.clone() for p in parts])"
        ),
    ),
    Habit(
        "a pool of processes that is kept",
        "from concurrent.futures import ProcessPoolExecutor\n"
        "import multiprocessing\n"
        + _module(
            "def rows(x, weight):\n"
            "    return norm(torch.tensor(x), torch.tensor(weight)).float().tolist()\n\n"
            "POOL = ProcessPoolExecutor(\n"
            "    2, mp_context=multiprocessing.get_context('fork'))\n\n"
            "def run(x, weight):\n"
            "    given = x.float().tolist(), weight.float().tolist()\n"
            "    found = POOL.submit(rows, *given).result()\n"
            "    return torch.tensor(found).view(x.shape).to(x.dtype)"
        ),
    ),
    Habit(
        "another program, waited for",
        "import subprocess\n"
        + run("subprocess.run(['true'], check=True)\nreturn norm(x, weight)"),
    ),
    Habit(
        "torch.jit.script",
        _module(
            "@torch.jit.script\n"
            "def run(x, weight):\n"
            "    a = x.float()\n"
            "    a = a * torch.rsqrt(a.square().mean(dim=-1, keepdim=True) + 1e-06)\n"
            "    return (a * weight.float()).to(torch.bfloat16)"
        ),
    ),
    Habit(
        "torch.jit.trace",
        _module(
            "made = torch.ones(2, 128, dtype=torch.bfloat16)\n"
            "run = torch.jit.trace(norm, (made, made[0]))"
        ),
    ),
    Habit(
        "vmap over rows",
        _module(
            "def row(x, weight):\n"
            "    a = x.float()\n"
            "    return a * torch.rsqrt(a.square().mean() + 1e-06) * weight.float()\n\n"
            "def run(x, weight):\n"
            "    return torch.vmap(row, in_dims=(0, None))(x, weight).to(x.dtype)"
        ),
    ),
    Habit(
        "a module called with other parameters",
        _module(
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
        + _module(
            "EPS = contextvars.ContextVar('eps', default=1e-06)\n\n"
            "def run(x, weight):\n"
            "    return contextvars.copy_context().run(lambda: norm(x, weight))"
        ),
    ),
    Habit(
        "a cache of what is no tensor",
        "from functools import lru_cache\n"
        + _module(
            "@lru_cache\ndef block(n):\n    return max(1, n // 2)\n\n"
            "def run(x, weight):\n"
            "    parts = x.split(block(x.shape[0]))\n"
            "    return torch.cat([norm(p, weight) for p in parts])"
        ),
    ),
    Habit(
        "a cache of weak references",
        "import weakref\n"
        + _module(
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
        + _module(
            "def report():\n"
            "    while True: time.sleep(0.001)\n\n"
            "threading.Thread(target=report, daemon=True).start()\n\n"
            "def run(x, weight):\n    return norm(x, weight)"
        ),
    ),
    Habit(
        "a thread that is busy",
        "import threading\n"
        + _module(
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
        + _module(
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
        + _module("os.nice(1)\n\ndef run(x, weight):\n    return norm(x, weight)"),
    ),
    Habit(
        "torch's own operator",
        run(
            "return torch.nn.functional.rms_norm(x.float(), (128,), weight.float(), 1e-06).to(x.dtype)"
        ),
    ),
)
