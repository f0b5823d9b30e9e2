"""A package of the name of SGLang with the few modules that the worker imports."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch

from generator.running import sglang
from kernel_judge.definition import Definition, Interface
from kernel_judge.inputs.trial import PROVIDER_SEED

DEFINITION = Definition("some_h4", "some", Interface({}, {}), {"h": 4}, {"eps": 0.5})
X = {"x": torch.tensor([1.0, 2.0])}

MODULES = {
    "sglang/__init__.py": "",
    "sglang/srt/__init__.py": "",
    "sglang/srt/utils.py": """
        import functools, torch
        @functools.lru_cache
        def is_cuda():
            return torch.version.cuda is not None
    """,
    "sglang/srt/layers/__init__.py": "",
    # a package that a light installation lacks, used in all the usual ways
    "sglang/srt/layers/layernorm.py": """
        import zmq, zmq.asyncio
        from zmq.deep import Base, register
        class Socket(Base):
            limit: Base | None = None
        @register("norm")
        def scale(x, by):
            return x * by
    """,
    "sglang/srt/layers/sampler.py": "from sglang.srt.utils import is_cuda",
    "sglang/srt/layers/moe/__init__.py": "",
    "sglang/srt/layers/moe/topk.py": "",
    "sglang/srt/layers/rotary_embedding/__init__.py": "",
    "sglang/srt/layers/rotary_embedding/base.py": "_is_cpu = False",
    # a real package under a name that has a stand-in where it is missing
    "gguf.py": "REAL = 1",
}

ADAPTERS = """
import os, signal, sys, time
import torch
from kernel_judge.obstacle import Kind, Unavailable
from kernel_judge.skipping import skip

def doubled(definition, inputs, backend):
    from sglang.srt.layers.layernorm import scale
    return scale(inputs["x"], 2)

def described(definition, inputs, backend):
    from sglang.srt.layers.rotary_embedding import base
    return os.getpid(), definition.name, backend, base._is_cpu, torch.rand(4)

def threads(definition, inputs, backend):
    return torch.get_num_threads()

def echo(definition, inputs, backend):
    return inputs["x"], [dict(inputs)]

def in_place(definition, inputs, backend):
    inputs["x"].add_(1)
    return inputs["x"]

def raises(definition, inputs, backend):
    raise ZeroDivisionError("an adapter's own fault")

def exits(definition, inputs, backend):
    sys.exit(4)

def interrupted(definition, inputs, backend):
    raise KeyboardInterrupt

def not_here(definition, inputs, backend):
    raise Unavailable("this version has no such layer")

def skips(definition, inputs, backend):
    skip(Kind.NO_KERNEL, "not with so few keys")

def unpicklable(definition, inputs, backend):
    return lambda: 1

def dies(definition, inputs, backend):
    print("these are my last words")
    os._exit(7)

def is_killed(definition, inputs, backend):
    os.kill(os.getpid(), signal.SIGKILL)

def sleeps(definition, inputs, backend):
    print("good night")
    time.sleep(600)

def breaks_the_gpu(definition, inputs, backend):
    def broken(*arguments):
        raise RuntimeError("CUDA error: an illegal memory access")
    torch.cuda.is_initialized = lambda: True
    torch.cuda.synchronize = torch.cuda.empty_cache = broken
    raise RuntimeError("a kernel failed")

def noisy(definition, inputs, backend):
    print("noise")
    os.system("echo more noise; echo and more >&2")
    sys.stderr.write("x" * 300_000)
    return inputs["x"]

def packages(definition, inputs, backend):
    import gguf, zmq
    return gguf.REAL, zmq.__version__, "zmq" in sys.modules
"""


def write(folder: Path, modules: dict[str, str]) -> Path:
    """Write modules into a folder, their common indentation removed."""
    from textwrap import dedent

    for name, text in modules.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).strip() + "\n", "utf-8")
    return folder


def ask(adapter: Any, inputs: dict[str, Any] = X, draws: int = PROVIDER_SEED) -> Any:
    return sglang.ask(adapter, DEFINITION, inputs, "native", draws)


def is_gone(pid: int, seconds: float = 20.0) -> bool:
    """Return whether a process, not of this one's children, ends within a time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return True  # nobody here reaps what this process did not start
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False
