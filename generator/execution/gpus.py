"""The GPUs that CUDA shows to this process, found without importing torch.

NVIDIA's management library (nvidia-ml-py) counts all GPUs of the machine;
`CUDA_VISIBLE_DEVICES` says which of them CUDA shows, and in which order.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Gpu:
    """A GPU, or a part of one (MIG).

    `name` is what CUDA_VISIBLE_DEVICES calls it: an index, a UUID, the name of a MIG
    device. `capability` is the compute capability as 90 for 9.0; `memory` and `free`
    are bytes, 0 where the library does not say.
    """

    name: str
    model: str
    capability: int
    memory: int
    free: int


@dataclass(frozen=True)
class Gpus:
    """The GPUs that CUDA shows, in its order.

    `missing` are the names in CUDA_VISIBLE_DEVICES that CUDA ignores: the first that
    is not there, and all after it. `cuda` is the newest CUDA version that the driver
    knows. Without nvidia-ml-py nothing is known, and `is_known` is False.
    """

    found: tuple[Gpu, ...] = ()
    missing: tuple[str, ...] = ()
    cuda: str = ""
    is_known: bool = True

    def shortage(self) -> str:
        """Return one line on GPUs that were asked for and are not there, or nothing."""
        if not self.missing:
            return ""
        asked = len(self.found) + len(self.missing)
        return (
            f"{VISIBLE} names {asked} GPUs, CUDA shows {len(self.found)}: "
            f"there is no GPU {self.missing[0]!r} here"
        )


def visible_gpus() -> Gpus:
    """Return the GPUs that CUDA shows to this process."""
    try:
        import pynvml
    except ImportError:
        return Gpus(is_known=False)
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError:
        return Gpus()
    asked = os.environ.get(VISIBLE)
    names = [str(n) for n in range(count)] if asked is None else _names(asked)
    gpus: list[Gpu] = []
    with suppress(pynvml.NVMLError):
        for name in names:
            gpus.append(_gpu(pynvml, name, count))
    version = _said(pynvml, pynvml.nvmlSystemGetCudaDriverVersion)
    cuda = f"{version // 1000}.{version % 1000 // 10}" if version else ""
    return Gpus(tuple(gpus), tuple(names[len(gpus) :]), cuda)


def bind(name: str) -> None:
    """Let CUDA show one GPU alone to this process and those that it starts.

    CUDA reads the variable when it is first used: call this before torch is imported.
    """
    os.environ[VISIBLE] = name


def sleep_while_waiting() -> None:
    """Let this process's threads sleep while they wait for a GPU; CUDA has them spin.

    Spinning takes cores from the others of many processes that share a GPU: of a run
    with 16, more than a fifth of its CPU time. Call this where CUDA is usable, before it
    is first used. Without cuda-bindings, which torch's CUDA builds need, nothing changes.
    """
    with suppress(ImportError, RuntimeError):
        from cuda.bindings import driver

        driver.cuInit(0)
        _, count = driver.cuDeviceGetCount()
        for place in range(count or 0):
            _, device = driver.cuDeviceGet(place)
            blocking = driver.CUctx_flags.CU_CTX_SCHED_BLOCKING_SYNC
            driver.cuDevicePrimaryCtxSetFlags(device, blocking)


def _names(asked: str) -> list[str]:
    """Return the names in CUDA_VISIBLE_DEVICES; an empty one and -1 show no GPU."""
    names = [name.strip() for name in asked.split(",")]
    return [] if names[0] in ("", "-1", "NoDevFiles") else names


def _gpu(pynvml: Any, name: str, count: int) -> Gpu:
    """Return the GPU of a name. Raises NVMLError where there is none."""
    handle = whole = _handle(pynvml, name, count)
    if name.startswith("MIG-"):
        # it has the capability of the GPU that it is a part of
        whole = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(whole)
    model = _said(pynvml, pynvml.nvmlDeviceGetName, handle) or ""
    memory = _said(pynvml, pynvml.nvmlDeviceGetMemoryInfo, handle)
    total, free = (memory.total, memory.free) if memory else (0, 0)
    return Gpu(name, model, 10 * major + minor, total, free)


def _handle(pynvml: Any, name: str, count: int) -> Any:
    """Return the library's handle of a GPU. Raises NVMLError where there is none.

    On a machine with several models CUDA may count in another order than the library;
    `CUDA_DEVICE_ORDER=PCI_BUS_ID` makes it the same.
    """
    if name.isdecimal():
        return pynvml.nvmlDeviceGetHandleByIndex(int(name))
    if name.startswith("GPU-"):
        # CUDA takes the start of a UUID as well
        for index in range(count):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            if pynvml.nvmlDeviceGetUUID(handle).startswith(name):
                return handle
    return pynvml.nvmlDeviceGetHandleByUUID(name)


def _said(pynvml: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return an answer, None where the library has none: that does no harm."""
    try:
        return function(*arguments)
    except pynvml.NVMLError:
        return None
