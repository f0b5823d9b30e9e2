"""The machine and libraries of an evaluation, as traces record them."""

from __future__ import annotations

import platform
from datetime import datetime, timezone
from importlib import metadata
from typing import Any

import torch

from generator.execution.sandbox import no_cuda

_LIBRARIES = ("torch", "triton", "flashinfer-python", "apache-tvm-ffi", "tilelang")


def environment(device: str) -> dict[str, Any]:
    """Return the hardware's name and the versions of the libraries that matter."""
    hardware = platform.processor() or platform.machine()
    if device == "cuda":
        hardware = torch.cuda.get_device_name(0)
    libraries = {}
    for name in _LIBRARIES:
        for distribution in metadata.distributions(name=name):
            libraries[name] = str(distribution.version)
    if torch.version.cuda:
        libraries["cuda"] = torch.version.cuda
    return {"hardware": hardware, "libs": libraries}


def now() -> str:
    """Return the time as ISO 8601, in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def why_no_cuda() -> str | None:
    """Return why solutions can't run on a GPU here, None where they can."""
    if not torch.cuda.is_available():
        return "torch finds no GPU"
    return no_cuda()
