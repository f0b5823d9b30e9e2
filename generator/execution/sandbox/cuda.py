"""CUDA in a sandbox: device files, libraries, the toolkit, environment variables."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from generator.execution.sandbox.paths import SYSTEM

DRIVER = "/proc/driver/nvidia"
NEEDED = ("nvidiactl", "nvidia-uvm")
_GPU = re.compile(r"nvidia\d+")
_TOOLKIT = "/usr/local/cuda"
_JOBS = "8"
# they choose devices and compilers; each is passed on only if its value is plain
_SETTINGS = """CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER FLASHINFER_CUDA_ARCH_LIST
    FLASHINFER_NVCC_THREADS MAX_JOBS REFERENCE_SGLANG_SECONDS
    REFERENCE_SGLANG_START_SECONDS TORCH_CUDA_ARCH_LIST"""
_PLAIN = re.compile(r"[\w.,:;+ -]{1,200}", re.ASCII)


def devices(dev: str = "/dev") -> list[str]:
    """Return the device files that CUDA opens on this machine."""
    names = sorted(os.listdir(dev)) if os.path.isdir(dev) else []
    return [f"{dev}/{name}" for name in names if name.startswith("nvidia")]


def gpus(paths: list[str]) -> list[str]:
    """Return those of the device files that are a GPU's."""
    return [path for path in paths if _GPU.fullmatch(os.path.basename(path))]


def missing(dev: str = "/dev") -> str | None:
    """Return in one line why CUDA cannot work here; None where its files are there.

    The driver creates them when it is first used, which is not possible in the sandbox.
    """
    nodes = devices(dev)
    if not gpus(nodes):
        return f"there is no NVIDIA GPU ({dev}/nvidia0) on this machine"
    lacks = [path for name in NEEDED if (path := f"{dev}/{name}") not in nodes]
    if lacks:
        return f"{lacks[0]} is not there: run nvidia-smi or nvidia-modprobe -u once"
    return None


def toolkit(environ: Mapping[str, str]) -> str | None:
    """Return the folder of nvcc, which FlashInfer compiles kernels with; None if none."""
    nvcc = shutil.which("nvcc", path=environ.get("PATH", ""))
    named = [environ.get("CUDA_HOME"), environ.get("CUDA_PATH"), _TOOLKIT]
    if nvcc is not None:
        named.insert(2, str(Path(nvcc).resolve().parents[1]))
    there = (path for path in named if path and os.path.isabs(path))
    return next((p for p in there if os.path.isfile(f"{p}/bin/nvcc")), None)


def library_folders(environ: Mapping[str, str]) -> list[str]:
    """Return where the caller's linker looks first; some drivers lie only there.

    Only folders below the system's are returned: others could belong to anybody.
    """
    named = environ.get("LD_LIBRARY_PATH", "").split(":")
    below = tuple(f"{folder}/" for folder in SYSTEM)
    return [
        path
        for path in named
        if os.path.isdir(path) and f"{os.path.realpath(path)}/".startswith(below)
    ]


def environment(environ: Mapping[str, str], path: str) -> dict[str, str]:
    """Return the variables that CUDA's programs need; `path` is their PATH so far."""
    environment = {
        name: environ[name]
        for name in _SETTINGS.split()
        if _PLAIN.fullmatch(environ.get(name, ""))
    }
    environment.setdefault("MAX_JOBS", _JOBS)
    home = toolkit(environ)
    if home is not None:
        environment |= {"CUDA_HOME": home, "PATH": f"{home}/bin:{path}"}
    folders = library_folders(environ)
    if folders:
        environment["LD_LIBRARY_PATH"] = ":".join(folders)
    return environment
