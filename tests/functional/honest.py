"""Habits of honest solutions, each a solution of rmsnorm_h128 that is right: all PASSED."""

from __future__ import annotations

from tests.functional.habit import Habit, module
from tests.functional.hacks import fills, run
from tests.functional.honest_forms import OF_FORM
from tests.functional.honest_python import OF_PYTHON
from tests.functional.honest_styles import OF_STYLE

HABITS = (
    Habit(
        "torch.compile with inductor",
        module("run = torch.compile(norm, dynamic=True)"),
    ),
    Habit(
        "torch.compile of graphs alone",
        module("run = torch.compile(norm, backend='eager', dynamic=True)"),
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
        module(
            "torch.set_num_threads(2)\n\n"
            "def run(x, weight):\n"
            "    torch.ones(1 << 20).exp().sum()\n"
            "    return norm(x, weight)"
        ),
    ),
    Habit(
        "C++ compiled by load_inline",
        "from torch.utils.cpp_extension import load_inline\n"
        + module(
            "MODULE = load_inline(\n"
            "    name='mine', functions=['scaled'], extra_cflags=['-O1'],\n"
            '    cpp_sources="""\n'
            "torch::Tensor scaled(torch::Tensor a, torch::Tensor w) {\n"
            "  float *p = a.data_ptr<float>(); const float *q = w.data_ptr<float>();\n"
            "  for (long i = 0, h = a.size(-1); i < a.numel(); i++) p[i] *= q[i % h];\n"
            "  return a;\n"
            "}\n"
            '""")\n\n'
            "def run(x, weight):\n"
            "    a = x.float()\n"
            "    a = a * torch.rsqrt(a.square().mean(-1, keepdim=True) + 1e-06)\n"
            "    return MODULE.scaled(a, weight.float()).to(x.dtype)"
        ),
        needs="ninja",
    ),
    Habit(
        "OpenMP in C by ctypes",
        "import ctypes, subprocess\n"
        + module(
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
        + module(
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
        + module(
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
        module(
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
        module(
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
        module(
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
        + module(
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
        + module(
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
    *OF_PYTHON,
    *OF_STYLE,
    *OF_FORM,
)
