"""GPUs and packages of this machine, found without importing torch into this process."""

from __future__ import annotations

import importlib.metadata
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from generator.execution.gpus import visible_gpus
from generator.execution.processes import run_python, safe_environment
from generator.running import sglang_light

_IMPORT_SECONDS = 120
# prints one line whatever the import raises; os._exit skips broken atexit handlers
_TRY_IMPORT = """
import importlib, importlib.util, os, sys
try:
    if len(sys.argv) == 2:
        importlib.import_module(sys.argv[1])
    else:
        spec = importlib.util.spec_from_file_location("loader", sys.argv[2])
        loader = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loader)
        loader.load()
    line = ""
except BaseException as error:
    text = " ".join(str(error).split())[:200]
    line = f"import failed: {type(error).__name__}: {text}"
print("\\0" + line, flush=True)
os._exit(0)
"""
# modules that take more than an import: a file whose `load` does it
_LOADERS = {"sglang": Path(sglang_light.__file__)}


@dataclass(frozen=True)
class Machine:
    """The installed packages and the first CUDA device.

    `capability` is the device's compute capability as 90 for 9.0, None without one;
    `memory` is its bytes, `cuda` the newest CUDA version that its driver knows. Without
    nvidia-ml-py nothing of a device is known, and `is_known` is False.
    """

    capability: int | None
    device: str = field(default="", kw_only=True)
    memory: int = field(default=0, kw_only=True)
    cuda: str = field(default="", kw_only=True)
    is_known: bool = field(default=True, kw_only=True)

    @property
    def no_device(self) -> str:
        """Return why `capability` is None."""
        known = "no CUDA device here"
        return known if self.is_known else "no CUDA device known without nvidia-ml-py"

    def version(self, distribution: str) -> str | None:
        """Return the installed version of a distribution, None where it is not."""
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            return None

    def missing(self, modules: Iterable[str]) -> tuple[str, ...]:
        """Return those of some top-level modules that are not installed."""
        return tuple(m for m in modules if not sglang_light.is_installed(m))

    def import_failure(self, module: str) -> str:
        """Return why a module can't be imported, empty where it can; takes seconds."""
        return _import_failure(module)


@cache
def _import_failure(module: str) -> str:
    command = ["-c", _TRY_IMPORT, module]
    command += [str(_LOADERS[module])] if module in _LOADERS else []
    try:
        done = run_python(
            command, environment=safe_environment(), timeout=_IMPORT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"import took over {_IMPORT_SECONDS} s"
    _, marker, line = done.stdout.rpartition("\0")
    if not marker:
        return f"import ended the process with status {done.returncode}"
    return line.strip()


@cache
def this_machine() -> Machine:
    """Return the machine that the process runs on.

    NVIDIA's management library is asked; torch would take seconds to say the same.
    """
    gpus = visible_gpus()
    if not gpus.found:
        return Machine(None, is_known=gpus.is_known)
    first = gpus.found[0]
    return Machine(
        first.capability, device=first.model, memory=first.memory, cuda=gpus.cuda
    )
