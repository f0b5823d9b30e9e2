"""Availability of production kernels here, with the exact reason where there is none."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from itertools import permutations

import torch

from kernel_judge.definition import Backend
from kernel_judge.elsewhere import elsewhere
from kernel_judge.obstacle import Kind, Obstacle
from kernel_judge.provider import providers

# of the modules that a backend may need: what to install where one is missing
_INSTALLED_BY = {"cutlass": "nvidia-cutlass-dsl"}


@cache
def import_failure(module: str) -> Obstacle | None:
    """Return why a module can't be imported, None where it can.

    Any exception is caught, for an import can fail with any: FlashInfer asserts without
    a GPU, a wheel for another CUDA raises OSError.
    """
    try:
        if importlib.util.find_spec(module) is None:
            return Obstacle(Kind.NOT_INSTALLED, "not installed")
        importlib.import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001
        text = " ".join(str(error).split())[:200]
        reason = f"import failed: {type(error).__name__}: {text}"
        return Obstacle(Kind.BROKEN, reason)
    return None


def provider_obstacle(provider: str, device: torch.device) -> Obstacle | None:
    """Return why no backend of a provider can be called on a device, None if one may.

    PyTorch's own CUDA kernels (cuBLAS) count as production kernels, its CPU ones don't.
    One that is called elsewhere is never imported here.
    """
    library = providers().get(provider)
    if library is None:
        return Obstacle(
            Kind.NOT_INSTALLED, "no installed distribution is this provider"
        )
    if library.broken:
        return Obstacle(Kind.BROKEN, library.broken)
    process = elsewhere(provider)
    if process is not None:
        return process.absence()
    failure = import_failure(library.module)
    if failure is not None:
        return failure
    if device.type != "cuda" and not library.on_cpu:
        return _needs_cuda(device)
    return None


def _needs_cuda(device: torch.device) -> Obstacle:
    return Obstacle(Kind.NEEDS_CUDA, f"needs CUDA, device is {device}")


def backend_obstacle(
    provider: str, backend: Backend, device: torch.device
) -> Obstacle | None:
    """Return why a provider's backend can't be called on a device, None if it can."""
    obstacle = provider_obstacle(provider, device)
    if obstacle is not None:
        return obstacle
    if backend.limit:
        return Obstacle(Kind.NO_KERNEL, f"{backend.name}: {backend.limit}")
    if device.type != "cuda":
        if backend.needs_cuda:
            return _needs_cuda(device)
        return missing_module(backend)
    if torch.version.hip is not None and backend.needs_cuda:
        return Obstacle(Kind.NEEDS_CUDA, "needs CUDA, torch is built for ROCm")
    sm = compute_capability(device)
    if sm < backend.min_sm:
        reason = f"{backend.name} needs SM{backend.min_sm}, device is SM{sm}"
        return Obstacle(Kind.NEEDS_SM, reason)
    if sm > backend.max_sm:
        reason = f"{backend.name} exists up to SM{backend.max_sm}, device is SM{sm}"
        return Obstacle(Kind.NEEDS_SM, reason)
    return _gpus_obstacle(backend) or missing_module(backend)


def _gpus_obstacle(backend: Backend) -> Obstacle | None:
    """Return why a backend of several GPUs can't have them, None if it can."""
    if backend.gpus == 1:
        return None
    wanted = f"{backend.name} needs {backend.gpus} GPUs"
    count = torch.cuda.device_count()
    if count < backend.gpus:
        reason = f"{wanted} in one process, CUDA shows {count}"
        return Obstacle(Kind.NEEDS_GPUS, reason)
    for one, other in permutations(range(count), 2):
        if not torch.cuda.can_device_access_peer(one, other):
            reason = f"{wanted}, and GPU {one} cannot reach the memory of GPU {other}"
            return Obstacle(Kind.NEEDS_GPUS, reason)
    return None


def missing_module(backend: Backend) -> Obstacle | None:
    """Return which module a backend lacks, and how to get it; None where all import."""
    for module in backend.needs:
        failure = import_failure(module)
        if failure is not None:
            hint = ""
            if failure.kind is Kind.NOT_INSTALLED:
                hint = f" (pip install {_INSTALLED_BY.get(module, module)})"
            reason = f"{backend.name} needs {module}: {failure}{hint}"
            return Obstacle(failure.kind, reason)
    return None


@cache
def compute_capability(device: torch.device) -> int:
    """Return a CUDA device's compute capability as 90 for 9.0.

    It is 0 under ROCm, whose gfx942 torch calls 9.4: no kernel for an SM runs there.
    """
    if torch.version.hip is not None:
        return 0
    major, minor = torch.cuda.get_device_capability(device)
    return 10 * major + minor
