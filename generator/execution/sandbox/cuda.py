"""What CUDA needs of a sandbox: device files, libraries, the toolkit, room to compile."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from generator.execution.sandbox.plan import SYSTEM, Limits

LIMITS = Limits(
    wall_seconds=3600.0,
    cpu_seconds=3600,
    memory_bytes=64 << 30,
    processes=4096,
    open_files=4096,
    file_bytes=4 << 30,
    disk_bytes=16 << 30,
)
"""Kernels are compiled anew in each run, many side by side; pinned memory counts."""

DRIVER = "/proc/driver/nvidia"
OF_PROC = ("driver/nvidia", "devices", "modules", "version")
"""What the driver's library reads of /proc, beside what any program does."""

_NEEDED = ("nvidiactl", "nvidia-uvm")
_GPU = re.compile(r"nvidia\d+")
_TOOLKIT = "/usr/local/cuda"
_JOBS = "8"
# what chooses devices and compilers; each is passed on only where it is a plain word
_SETTINGS = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "FLASHINFER_CUDA_ARCH_LIST",
    "FLASHINFER_NVCC_THREADS",
    "MAX_JOBS",
    "REFERENCE_SGLANG_SECONDS",
    "REFERENCE_SGLANG_START_SECONDS",
    "TORCH_CUDA_ARCH_LIST",
)
_PLAIN = re.compile(r"[\w.,:;+ -]{1,200}", re.ASCII)


def devices(dev: str = "/dev") -> list[str]:
    """Return the device files that CUDA opens on this machine."""
    names = sorted(os.listdir(dev)) if os.path.isdir(dev) else []
    return [f"{dev}/{name}" for name in names if name.startswith("nvidia")]


def missing(dev: str = "/dev") -> str | None:
    """Return in one line why CUDA cannot work here; None where its files are there.

    The driver makes them when it is used first, which nobody can do in the sandbox.
    """
    names = [os.path.basename(path) for path in devices(dev)]
    if not any(map(_GPU.fullmatch, names)):
        return f"there is no NVIDIA GPU ({dev}/nvidia0) on this machine"
    for name in _NEEDED:
        if name not in names:
            return (
                f"{dev}/{name} is not there: run nvidia-smi or nvidia-modprobe -u once"
            )
    return None


def closed(paths: Sequence[str]) -> str | None:
    """Return which of the device files this user may not use; None if he may."""
    named = {os.path.basename(path): path for path in paths}
    for name in _NEEDED:
        if name in named and not os.access(named[name], os.R_OK | os.W_OK):
            return f"{named[name]}: not readable and writable by others"
    gpus = [path for name, path in named.items() if _GPU.fullmatch(name)]
    if gpus and not any(os.access(path, os.R_OK | os.W_OK) for path in gpus):
        return f"{gpus[0]}: not readable and writable by others"
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

    Below the system's folders only: another could be anybody's.
    """
    named = environ.get("LD_LIBRARY_PATH", "").split(":")
    return [p for p in named if os.path.isdir(p) and _is_below(p, SYSTEM)]


def environment(environ: Mapping[str, str], path: str) -> dict[str, str]:
    """Return what CUDA's programs need to be told, with `path` as their PATH."""
    told = {
        name: environ[name]
        for name in _SETTINGS
        if _PLAIN.fullmatch(environ.get(name, ""))
    }
    told.setdefault("MAX_JOBS", _JOBS)
    home = toolkit(environ)
    if home is not None:
        told |= {"CUDA_HOME": home, "PATH": f"{home}/bin:{path}"}
    folders = library_folders(environ)
    if folders:
        told["LD_LIBRARY_PATH"] = ":".join(folders)
    return told


def mounts_below(paths: Iterable[str], mountinfo: str) -> list[str]:
    """Return what is mounted below paths; `mountinfo` is the text of /proc's file.

    Containers mount each library of the driver over an empty file.
    """
    roots = tuple({os.path.realpath(path) for path in paths})
    found = []
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if len(fields) > 4:
            place = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), fields[4])
            if _is_below(place, roots) and place not in roots:
                found.append(place)
    return list(dict.fromkeys(found))


def _is_below(path: str, folders: Iterable[str]) -> bool:
    real = os.path.realpath(path)
    return any(real == f or real.startswith(f"{f.rstrip('/')}/") for f in folders)
