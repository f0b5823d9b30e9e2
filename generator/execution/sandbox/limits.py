"""What a confined command may use."""

from __future__ import annotations

from dataclasses import dataclass

_RESERVED = 16 << 30
"""Addresses that a process may reserve beyond its memory.

An import of torch for CPUs reserves 0.6 GiB, every thread 8 MiB of stack and 64 MiB of
allocator; a build of torch for CUDA maps several GiB of libraries. What is in use is
limited apart from that, so that this bound need not be close."""


@dataclass(frozen=True)
class Limits:
    """What a command may use; sizes in bytes, times in seconds."""

    wall_seconds: float = 600.0
    """Until all of its processes are killed."""
    cpu_seconds: int = 600
    """Of one process."""
    memory_bytes: int = 8 << 30
    """Resident in all processes together; each may reserve addresses for more."""
    processes: int = 256
    """Threads count as well."""
    open_files: int = 1024
    """Of one process."""
    file_bytes: int = 1 << 30
    """Size of one file."""
    disk_bytes: int = 2 << 30
    """In the working folder, and again in temporary files."""
    output_bytes: int = 1 << 20
    """Kept of each of the two streams: the first and the last half."""


CUDA_LIMITS = Limits(3600.0, 3600, 64 << 30, 4096, 4096, 4 << 30, 16 << 30)
"""Kernels are compiled anew in each run, many side by side; pinned memory counts."""


def rlimits(limits: Limits, *, addresses: bool) -> dict[str, int]:
    """Return what the kernel holds a process to, by the names of its limits."""
    wanted = {
        "CORE": 0,
        "CPU": limits.cpu_seconds,
        "NOFILE": limits.open_files,
        "FSIZE": limits.file_bytes,
        "NPROC": limits.processes,
    }
    # CUDA reserves addresses by the terabyte
    return wanted | ({"AS": limits.memory_bytes + _RESERVED} if addresses else {})
