"""Which production kernels can be called here, and the exact reason where not."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from functools import cache

import torch

from . import sglang
from .definition import Backend

PROVIDERS = ("flashinfer", "sglang", "pytorch")

DISTRIBUTIONS = {"flashinfer": "flashinfer-python", "sglang": "sglang"}
# of the modules that a backend may need: what to install where one is missing
_INSTALLED_BY = {"cutlass": "nvidia-cutlass-dsl"}


@cache
def import_failure(module: str) -> str | None:
    """Return why a module can't be imported, None where it can.

    Any exception is caught, for an import can fail with any: FlashInfer asserts without a GPU, a wheel for
    another CUDA raises OSError.
    """
    try:
        if importlib.util.find_spec(module) is None:
            return "not installed"
        importlib.import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001
        text = " ".join(str(error).split())[:200]
        return f"import failed: {type(error).__name__}: {text}"
    return None


def provider_reason(provider: str, device: torch.device) -> str | None:
    """Return why no backend of a provider can be called on a device, None if one may.

    PyTorch's own CUDA kernels (cuBLAS) count as production kernels, its CPU ones don't.
    SGLang is asked in a process of its own and never imported here.
    """
    if provider == "sglang":
        return sglang.absence()
    if provider != "pytorch":
        failure = import_failure(provider)
        if failure is not None:
            return failure
    if device.type != "cuda":
        return f"needs CUDA, device is {device}"
    return None


def backend_reason(provider: str, backend: Backend, device: torch.device) -> str | None:
    """Return why a provider's backend can't be called on a device, None if it can."""
    reason = provider_reason(provider, device)
    if reason is not None:
        return reason
    if device.type != "cuda":
        if backend.needs_cuda:
            return f"needs CUDA, device is {device}"
        return needs_reason(backend)
    sm = compute_capability(device)
    if sm < backend.min_sm:
        return f"{backend.name} needs SM{backend.min_sm}, device is SM{sm}"
    if sm > backend.max_sm:
        return f"{backend.name} exists up to SM{backend.max_sm}, device is SM{sm}"
    return needs_reason(backend)


def needs_reason(backend: Backend) -> str | None:
    """Return which module a backend lacks, and how to get it; None where all import."""
    for module in backend.needs:
        failure = import_failure(module)
        if failure is not None:
            hint = ""
            if failure == "not installed":
                hint = f" (pip install {_INSTALLED_BY.get(module, module)})"
            return f"{backend.name} needs {module}: {failure}{hint}"
    return None


@cache
def compute_capability(device: torch.device) -> int:
    """Return a CUDA device's compute capability as 90 for 9.0."""
    major, minor = torch.cuda.get_device_capability(device)
    return 10 * major + minor


@cache
def version(provider: str) -> str:
    """Return the installed version of a provider, empty where none is recorded."""
    if provider == "pytorch":
        return str(torch.__version__)
    try:
        return importlib.metadata.version(DISTRIBUTIONS[provider])
    except importlib.metadata.PackageNotFoundError:
        # imported before it is described, but for SGLang, which never is
        return str(getattr(sys.modules.get(provider), "__version__", ""))


def describe(provider: str, device: torch.device) -> str:
    """Return one line on a provider: its version, or why it is not used."""
    reason = provider_reason(provider, device)
    if reason is not None:
        return f"{provider}: {reason}"
    text = f"{provider} {version(provider)}".rstrip()
    note = sglang.note(device.type == "cuda") if provider == "sglang" else ""
    return f"{text} ({note})" if note else text
