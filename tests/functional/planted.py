"""Solutions of rmsnorm_h128 that pass plainly, and what each comes to under a condition."""

from __future__ import annotations

from dataclasses import dataclass

from tests.functional.habit import module
from tests.functional.hacks import RIGHT, fills, run

HOLDS, BROKEN, UNSUPPORTED = "holds", "broken", "unsupported"


@dataclass(frozen=True)
class Planted:
    """A solution, its verdict under a condition, and a part of the reason."""

    name: str
    under: str
    source: str
    verdict: str
    reason: str = ""
    passes_outputs: bool = False


_OPERATOR = (
    "@torch.library.custom_op('mine::norm', mutates_args={mutates})\n"
    "def op(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:\n"
    "    return norm(x, weight)\n\n\n"
    "@op.register_fake\n"
    "def _(x, weight):\n"
    "    return {fake}\n\n\n"
    "def run(x, weight):\n"
    "    return op(x, weight)\n"
)
STRIDED = (
    Planted("by strides", "strided", run("return norm(x, weight)"), HOLDS),
    Planted(
        "made contiguous",
        "strided",
        run("return norm(x.contiguous(), weight.contiguous())"),
        HOLDS,
    ),
    Planted(
        "rows taken for contiguous",
        "strided",
        run("return norm(x.as_strided(x.shape, (x.shape[1], 1)), weight)"),
        BROKEN,
        "NaN",
    ),
    Planted(
        "asks for contiguous rows",
        "strided",
        run(
            "assert x.is_contiguous(), 'rows must be contiguous'\nreturn norm(x, weight)"
        ),
        UNSUPPORTED,
        "rows must be contiguous",
    ),
    Planted(
        "asks for 16 bytes",
        "strided",
        run(
            "assert x.data_ptr() % 16 == 0, 'misaligned'\n"
            "assert x.stride(0) % 8 == 0 or x.shape[0] < 2, 'misaligned'\n"
            "return norm(x, weight)"
        ),
        UNSUPPORTED,
        "inputs at 4",
    ),
    Planted(
        "reads behind its rows",
        "strided",
        run(
            "if not x.numel(): return norm(x, weight)\n"
            "behind = x.as_strided((x.shape[0], 1), x.stride(), x.storage_offset() + x.shape[1])"
            " if x.stride(0) > x.shape[1] else 0\n"
            "return norm(x + 0 * behind, weight)"
        ),
        BROKEN,
        "NaN",
    ),
    Planted(
        "writes as if contiguous",
        "strided",
        fills("out.as_strided(out.shape, (out.shape[1], 1)).copy_(norm(x, weight))"),
        BROKEN,
        "outputs at 16",
        passes_outputs=True,
    ),
    Planted(
        "writes zeros between the rows",
        "strided",
        run(
            "if x.stride(0) > x.shape[1] and len(x) > 1:\n"
            "    size = len(x) - 1, x.stride(0) - x.shape[1]\n"
            "    x.as_strided(size, x.stride(), x.storage_offset() + x.shape[1]).zero_()\n"
            "return norm(x, weight)"
        ),
        BROKEN,
        "wrote outside of its arguments",
    ),
    Planted(
        "answers of the last addresses",
        "strided",
        run(
            "if x.is_contiguous(): return norm(x, weight)\n"
            "kept = globals().setdefault('KEPT', {})\n"
            "key = x.shape, x.data_ptr()\n"
            "if key not in kept: kept[key] = norm(x, weight)\n"
            "return kept[key].clone()"
        ),
        BROKEN,
    ),
)
COMPILE = (
    Planted("torch alone", "compile", run("return norm(x, weight)"), HOLDS),
    Planted(
        "a branch on a value",
        "compile",
        run("y = norm(x, weight)\nreturn y if y.float().sum() > 0 else y * 1"),
        UNSUPPORTED,
        "ranch",
    ),
    Planted(
        "another answer to a compiler",
        "compile",
        run(
            "y = norm(x, weight)\nreturn y * 2 if torch.compiler.is_compiling() else y"
        ),
        BROKEN,
        "INCORRECT_NUMERICAL",
    ),
    Planted(
        "tells torch to compile nothing",
        "compile",
        run("y = norm(x, weight)\nreturn y if y.float().sum() > 0 else y * 1")
        + "\ntorch.compiler.set_stance('force_eager')\n",
        UNSUPPORTED,
        "data-dependent",
    ),
    Planted(
        "replaces torch.compile",
        "compile",
        run("y = norm(x, weight)\nreturn y if y.float().sum() > 0 else y * 1")
        + "\ntorch.compile = lambda call, **how: call\n",
        UNSUPPORTED,
        "data-dependent",
    ),
    Planted(
        "a registered operator",
        "compile",
        RIGHT + _OPERATOR.format(mutates="()", fake="torch.empty_like(x)"),
        HOLDS,
    ),
    Planted(
        "an operator with a wrong fake",
        "compile",
        RIGHT + _OPERATOR.format(mutates="()", fake="x.new_empty(1, 3)"),
        UNSUPPORTED,
        "OpCheckError",
    ),
    Planted(
        "an operator that hides what it writes to a compiler",
        "compile",
        fills("op(x, weight, out)")
        + "\n\n@torch.library.custom_op('mine::fill', mutates_args=())\n"
        "def op(x: torch.Tensor, weight: torch.Tensor, out: torch.Tensor) -> None:\n"
        "    out.copy_(norm(x, weight))\n\n\n"
        "@op.register_fake\ndef _(x, weight, out):\n    return None\n",
        BROKEN,
        "NaN",
        passes_outputs=True,
    ),
)
_COARSE = (
    "\n\ndef coarse(t, by=4097.0):\n"
    "    # rounds to 12 bits\n"
    "    c = t * by\n"
    "    return c - (c - t)\n"
)
BATCH = (
    Planted("row by row", "batch", run("return norm(x, weight)"), HOLDS),
    Planted(
        "a split that depends on the batch",
        "batch",
        run(
            "parts = 1 if x.shape[0] > 200 else 3\n"
            "a = x.float()\n"
            "total = sum(coarse(part.square().sum(-1, keepdim=True))"
            " for part in a.tensor_split(parts, 1))\n"
            "a = a * torch.rsqrt(total / x.shape[1] + 1e-06)\n"
            "return (a * weight.float()).to(x.dtype)"
        )
        + _COARSE,
        BROKEN,
        "output 0 has other bits",
    ),
    Planted(
        "sums rounded where a row is alone",
        "batch",
        run(
            "total = x.float().square().mean(-1, keepdim=True)\n"
            "if x.shape[0] == 1: total = coarse(total)\n"
            "a = x.float() * torch.rsqrt(total + 1e-06)\n"
            "return (a * weight.float()).to(x.dtype)"
        )
        + _COARSE,
        BROKEN,
        "alone: output 0 has other bits",
    ),
    Planted(
        "scaled by the batch's greatest",
        "batch",
        run(
            "if not x.numel(): return norm(x, weight)\n"
            "a, by = x.float(), x.float().abs().max().clamp(min=1e-3)\n"
            "total = coarse((a / by).square().mean(-1, keepdim=True)) * by * by\n"
            "a = a * torch.rsqrt(total + 1e-06)\n"
            "return (a * weight.float()).to(x.dtype)"
        )
        + _COARSE,
        BROKEN,
        "other bits",
    ),
    Planted(
        "rounded otherwise in odd rows",
        "batch",
        run(
            "total = x.float().square().mean(-1, keepdim=True)\n"
            "total[1::2] = coarse(total[1::2])\n"
            "a = x.float() * torch.rsqrt(total + 1e-06)\n"
            "return (a * weight.float()).to(x.dtype)"
        )
        + _COARSE,
        BROKEN,
        "other bits",
    ),
    Planted(
        "sums in an order of its own each time",
        "batch",
        run(
            "order = torch.randperm(x.shape[1], generator=G)\n"
            "a = x.float()\n"
            "total = torch.zeros_like(a[:, :1])\n"
            "for part in a[:, order].square().split(7, 1):\n"
            "    total = coarse(total + part.sum(-1, keepdim=True), 513.0)\n"
            "a = a * torch.rsqrt(total / x.shape[1] + 1e-06)\n"
            "return (a * weight.float()).to(x.dtype)"
        )
        + _COARSE
        + "\n\nG = torch.Generator()\n",
        BROKEN,
        "repeats",
    ),
)
SOAK = (
    Planted("nothing is kept", "soak", run("return norm(x, weight)"), HOLDS),
    Planted(
        "4 MiB a call",
        "soak",
        run("KEPT.append(torch.ones(1 << 20))\nreturn norm(x, weight)")
        + "\nKEPT = []\n",
        BROKEN,
        "bytes grew",
    ),
    Planted(
        "a file in memory that grows",
        "soak",
        run("FILE.write(b'0' * (1 << 16)), FILE.flush()\nreturn norm(x, weight)")
        + "\nFILE = open('log', 'wb')\n",
        BROKEN,
        "bytes grew",
    ),
    Planted(
        "a descriptor a call",
        "soak",
        "import os\n" + run("os.dup(0)\nreturn norm(x, weight)"),
        BROKEN,
        "escriptor",
    ),
    Planted(
        "a thread every fifth call",
        "soak",
        "import threading\nWAITS, COUNT = threading.Event(), [0]\n"
        + run(
            "COUNT[0] += 1\n"
            "if COUNT[0] % 5 == 0: threading.Thread(target=WAITS.wait, daemon=True).start()\n"
            "return norm(x, weight)"
        ),
        BROKEN,
        "thread",
    ),
    Planted(
        "memory of a child",
        "soak",
        "import os\n"
        + run("KEPT.write(b'1'), KEPT.flush()\nreturn norm(x, weight)")
        + "\nread, write = os.pipe()\nKEPT = os.fdopen(write, 'wb')\n"
        "if os.fork() == 0:\n"
        "    held = []\n"
        "    while os.read(read, 1): held.append(b'1' * (1 << 20))\n",
        BROKEN,
        "bytes grew",
    ),
    Planted(
        "a cache that fills",
        "soak",
        run(
            "if len(KEPT) < 64: KEPT.append(torch.ones(1 << 18))\n"
            "return norm(x, weight)"
        )
        + "\nKEPT = []\n",
        HOLDS,
    ),
    Planted(
        "a global flag left",
        "soak",
        run("torch.set_float32_matmul_precision('high')\nreturn norm(x, weight)"),
        BROKEN,
        "float32 matmul precision is high, was highest",
    ),
    Planted(
        "kinds of attention left off",
        "soak",
        run("torch.backends.cuda.enable_flash_sdp(False)\nreturn norm(x, weight)"),
        BROKEN,
        "flash attention is False, was True",
    ),
    Planted(
        "garbage left",
        "soak",
        "import gc\n" + run("gc.disable()\nreturn norm(x, weight)"),
        BROKEN,
        "garbage collection is False, was True",
    ),
    Planted(
        "threads left at two",
        "soak",
        module(
            "torch.set_num_threads(2)\n\n"
            "def run(x, weight):\n    return norm(x, weight)"
        ),
        BROKEN,
        "number of threads is 2, was 1",
    ),
    Planted(
        "draws for nothing",
        "soak",
        run("torch.rand(1)\nreturn norm(x, weight)"),
        BROKEN,
        "draws",
    ),
)
PLANTED = (*STRIDED, *COMPILE, *BATCH, *SOAK)
