"""What this machine has, found without importing torch into this process."""

from __future__ import annotations

import ctypes
import importlib.metadata
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

_IMPORT_SECONDS = 120
# CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
# prints one line whatever the import raises; os._exit skips broken atexit handlers
_TRY_IMPORT = """
import importlib, os, sys
try:
    importlib.import_module(sys.argv[1])
    line = ""
except BaseException as error:
    text = " ".join(str(error).split())[:200]
    line = f"import failed: {type(error).__name__}: {text}"
print("\\0" + line, flush=True)
os._exit(0)
"""


@dataclass(frozen=True)
class Machine:
    """Answer questions on installed packages and the first CUDA device.

    `capability` is the device's compute capability as 90 for 9.0, None without one.
    """

    capability: int | None

    def version(self, distribution: str) -> str | None:
        """Return the installed version of a distribution, None where it is not."""
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            return None

    def import_failure(self, module: str) -> str:
        """Return why a module can't be imported, empty where it can; takes seconds."""
        return _import_failure(module)


@cache
def this_machine() -> Machine:
    """Return the machine that the process runs on."""
    return Machine(_first_capability())


@cache
def _import_failure(module: str) -> str:
    command = [sys.executable, "-c", _TRY_IMPORT, module]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_IMPORT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"import took over {_IMPORT_SECONDS} s"
    _, marker, line = done.stdout.rpartition("\0")
    if not marker:
        return f"import ended the process with status {done.returncode}"
    return line.strip()


def _first_capability() -> int | None:
    """Ask the CUDA driver itself; torch would take seconds to say the same."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    attribute = driver.cuDeviceGetAttribute
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(device), 0)
        or attribute(ctypes.byref(major), _CAPABILITY_MAJOR, device)
        or attribute(ctypes.byref(minor), _CAPABILITY_MINOR, device)
    )
    return None if failed else 10 * major.value + minor.value
