"""Styles in which authors of kernels write, each a right solution: all PASSED."""

from __future__ import annotations

from tests.functional.habit import Habit, module
from tests.functional.hacks import fills, run

_CALLS = "\n\ndef run(x, weight):\n    return "

OF_STYLE = (
    Habit(
        "an object that is called",
        module(
            "class Kernel:\n"
            "    def __init__(self):\n"
            "        self.plans = {}\n\n"
            "    def __call__(self, x, weight):\n"
            "        self.plans.setdefault(tuple(x.shape), len(self.plans))\n"
            "        return norm(x, weight)\n\n\n"
            "run = Kernel()"
        ),
    ),
    Habit(
        "a part of a function",
        "import functools\n"
        + module(
            "def scaled(factor, x, weight):\n"
            "    return norm(x, weight * factor)\n\n\n"
            "run = functools.partial(scaled, 1.0)"
        ),
    ),
    Habit(
        "plans by shape, the least recent forgotten",
        "import functools\n"
        + module(
            "@functools.lru_cache(maxsize=4)\n"
            "def plan(rows, dtype):\n"
            "    return max(1, rows // 8), torch.float32\n"
            "\n\n"
            "def run(x, weight):\n"
            "    size, _ = plan(len(x), x.dtype)\n"
            "    return torch.cat([norm(part, weight) for part in x.split(size)])"
        ),
    ),
    Habit(
        "a function with a backward",
        module(
            "class Norm(torch.autograd.Function):\n"
            "    @staticmethod\n"
            "    def forward(ctx, x, weight):\n"
            "        ctx.save_for_backward(x, weight)\n"
            "        return norm(x, weight)\n\n"
            "    @staticmethod\n"
            "    def backward(ctx, grad):\n"
            "        raise NotImplementedError\n" + _CALLS + "Norm.apply(x, weight)"
        ),
    ),
    Habit(
        "a table of tuned settings in its home",
        "import json, os, pathlib\n"
        + module(
            "FILE = pathlib.Path.home() / '.cache' / 'norm' / 'tuned.json'\n"
            "\n\n"
            "def run(x, weight):\n"
            "    tuned = json.loads(FILE.read_text()) if FILE.exists() else {}\n"
            "    size = tuned.setdefault(str(len(x)), max(1, len(x) // 4))\n"
            "    FILE.parent.mkdir(parents=True, exist_ok=True)\n"
            "    part = FILE.with_suffix('.new')\n"
            "    part.write_text(json.dumps(tuned))\n"
            "    os.replace(part, FILE)\n"
            "    return torch.cat([norm(rows, weight) for rows in x.split(size)])"
        ),
    ),
    Habit(
        "a text of its own, compiled",
        "import inspect, linecache, types\n"
        + module(
            "TEXT = inspect.getsource(norm).replace('def norm', 'def made')\n"
            "linecache.cache['made.py'] = (len(TEXT), None, TEXT.splitlines(True), 'made.py')\n"
            "made = types.ModuleType('made')\n"
            "vars(made)['torch'] = torch\n"
            "exec(compile(TEXT, 'made.py', 'exec'), vars(made))\n"
            + _CALLS
            + "made.made(x, weight)"
        ),
    ),
    Habit(
        "precision of products set when imported",
        module(
            "torch.set_float32_matmul_precision('high')\n"
            "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False\n"
            + _CALLS
            + "norm(x, weight)"
        ),
    ),
    Habit(
        "ranges for a profiler",
        run("with torch.profiler.record_function('norm'):\n    return norm(x, weight)"),
    ),
    Habit(
        "arrays by DLPack",
        "import numpy\n"
        + run(
            "a = numpy.from_dlpack(x.float())\n"
            "a = a / numpy.sqrt((a * a).mean(-1, keepdims=True) + 1e-06)\n"
            "return (torch.from_dlpack(a.copy()) * weight.float()).to(x.dtype)"
        ),
    ),
    Habit(
        "lists of rows at once",
        run(
            "rows = [r.float() for r in x.unbind()]\n"
            "lengths = [torch.rsqrt(r.square().mean() + 1e-06) for r in rows]\n"
            "rows = torch._foreach_mul(rows, lengths)\n"
            "torch._foreach_mul_(rows, [weight.float()] * len(rows))\n"
            "return torch.stack(rows).to(x.dtype) if rows else torch.empty_like(x)"
        ),
    ),
    Habit(
        "the output as scratch",
        fills(
            "a = x.float()\n"
            "length = torch.rsqrt(a.square().mean(-1, keepdim=True) + 1e-06)\n"
            "out.copy_(x)\n"
            "torch.mul(a, length, out=a)\n"
            "torch.mul(a, weight.float(), out=a)\n"
            "out.copy_(a)"
        ),
        passes_outputs=True,
    ),
    Habit(
        "random numbers of its own, and the state put back",
        run(
            "with torch.random.fork_rng(devices=[]):\n"
            "    torch.manual_seed(0)\n"
            "    noise = torch.rand(1)\n"
            "return norm(x, weight) if noise >= 0 else x"
        ),
    ),
    Habit(
        "handlers for the end, and for a crash",
        "import atexit, faulthandler, warnings\n"
        + module(
            "faulthandler.enable()\n"
            "atexit.register(print, 'over')\n"
            "warnings.simplefilter('ignore')\n"
            "\n\n"
            "def run(x, weight):\n"
            "    warnings.warn('slow', RuntimeWarning, stacklevel=2)\n"
            "    return norm(x, weight)"
        ),
    ),
    Habit(
        "another way for each number of rows",
        "import math\n"
        + module(
            "def by_rows(x, weight):\n"
            "    return torch.stack([norm(row, weight) for row in x])\n\n\n"
            "def padded(x, weight):\n"
            "    rows = -(-len(x) // 64) * 64\n"
            "    wide = x.new_zeros(rows, x.shape[1])\n"
            "    wide[: len(x)] = x\n"
            "    return norm(wide, weight)[: len(x)]\n\n\n"
            "WAYS = {0: padded, 1: by_rows}\n"
            "\n\n"
            "def run(x, weight):\n"
            "    return WAYS[0 < len(x) < 8](x, weight)"
        ),
    ),
)
