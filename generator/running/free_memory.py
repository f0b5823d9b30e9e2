"""Whether a case fits into the memory that is free here."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch

from generator.running.run_plan import SHARE
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.memory import COPIES, PeakBytes, tensor_bytes
from kernel_judge.obstacle import Kind, Obstacle

# of a worker for memory of the GPU that others hold: their cases last seconds
WAIT_SECONDS = 120.0
_POLL_SECONDS = 0.2
# what allocators say where they raise a plain RuntimeError
_SAYINGS = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def available_bytes(device: torch.device) -> int | None:
    """Return the free bytes of a device, None where the system does not say."""
    if device.type == "cuda":
        # what torch keeps of memory that was freed can be had again
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(
            device
        )
        return int(torch.cuda.mem_get_info(device)[0]) + cached
    known = [free for free in (_system_bytes(), _container_bytes()) if free is not None]
    return min(known, default=None)


def _system_bytes() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        return 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None


def _container_bytes() -> int | None:
    """Return what a container's limit leaves; without one the file says `max`."""
    try:
        limit = int((_CGROUP / "memory.max").read_text())
        return limit - int((_CGROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return None


def needed_bytes(
    definition: Definition, case: Case, peak_bytes: PeakBytes | None = None
) -> int:
    """Return the bytes that a case needs: by the op's own count, else by copies."""
    if peak_bytes is not None:
        return peak_bytes(definition, case)
    return COPIES * tensor_bytes(definition, case)


def shortage(
    definition: Definition,
    case: Case,
    device: torch.device,
    peak_bytes: PeakBytes | None = None,
) -> Obstacle | None:
    """Return `needs 64.4 GiB, device has 24.0` where a case does not fit, else None."""
    needed = needed_bytes(definition, case, peak_bytes)
    free = available_bytes(device)
    if free is None:
        return None
    # a GPU that runs out says so; a process on the CPU is killed
    workers = sharing_workers() if device.type == "cpu" else 1
    if needed <= free / workers:
        return None
    text = f"needs {needed / 2**30:.1f} GiB, device has {free / 2**30:.1f}"
    text += "" if workers == 1 else f" for {workers} workers"
    return Obstacle(Kind.NEEDS_MEMORY, text)


def shortage_after_waiting(
    definition: Definition,
    case: Case,
    device: torch.device,
    peak_bytes: PeakBytes | None = None,
) -> Obstacle | None:
    """Return `shortage`, where workers share a GPU after waiting for the others' memory.

    A case that is larger than what workers' contexts leave of the GPU does not wait.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while (lack := shortage(definition, case, device, peak_bytes)) is not None:
        total = total_bytes(device) or 0
        if (
            device.type != "cuda"
            or sharing_workers() == 1
            or needed_bytes(definition, case, peak_bytes) > SHARE * total
            or time.monotonic() > deadline
        ):
            return lack
        time.sleep(_POLL_SECONDS)
    return None


def total_bytes(device: torch.device) -> int | None:
    """Return the bytes of a device's memory, None where the system does not say."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    try:
        with _MEMINFO.open(encoding="ascii") as lines:
            return 1024 * int(next(lines).split()[1])
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def sharing_workers() -> int:
    """Return how many workers of pytest-xdist run the tests here, 1 without it."""
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


def is_exhaustion(error: BaseException | None) -> bool:
    """Return whether an error, or one that led to it, says that memory ran out."""
    while error is not None:
        if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
            return True
        # an assertion, or a verdict, may quote such words
        if isinstance(error, RuntimeError) and any(s in str(error) for s in _SAYINGS):
            return True
        error = error.__cause__
    return False
