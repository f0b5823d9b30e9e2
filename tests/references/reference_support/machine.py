"""The machine that a recording is made on: its GPU and the versions that matter."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .available import source_name
from .definition import Backend
from .providers import PROVIDERS, compute_capability, version

_DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True)
class Machine:
    """Hold what a kernel's answer may depend on beside its inputs.

    `sm` is the compute capability as 90 for 9.0, None on a CPU; `date` is UTC's.
    """

    gpu: str
    sm: int | None
    versions: dict[str, str]
    date: str

    def label(self, provider: str, backend: Backend) -> str:
        """Return what tells a recording from others: flashinfer/fa2@0.6@NVIDIA-H200."""
        gpu = re.sub(r"[^A-Za-z0-9.]+", "-", self.gpu)
        source = source_name(provider, backend)
        # torch's own kernels come with its version
        told = self.versions.get("torch" if provider == "pytorch" else provider, "")
        return f"{source}@{told}@{gpu}"

    def about(self, provider: str, backend: Backend) -> dict[str, Any]:
        """Return the provenance of what a provider's backend returns here."""
        return {
            "source": source_name(provider, backend),
            "provider": provider,
            "backend": backend.name,
            "gpu": self.gpu,
            "sm": self.sm,
            "versions": self.versions,
            "date": self.date,
        }


def this_machine(device: torch.device) -> Machine:
    """Return the machine that the process runs on, with the GPU that it uses."""
    versions = {"torch": str(torch.__version__), "cuda": str(torch.version.cuda or "")}
    for provider in PROVIDERS:
        if provider != "pytorch":
            versions[provider] = _version(provider)
    gpu, sm = "CPU", None
    if device.type == "cuda":
        gpu, sm = torch.cuda.get_device_name(device), compute_capability(device)
        versions["driver"] = _driver()
    return Machine(gpu, sm, versions, time.strftime("%Y-%m-%d", time.gmtime()))


def _version(provider: str) -> str:
    try:
        return version(provider)
    except Exception:  # noqa: BLE001 - not there, or not importable: no version
        return ""


def _driver() -> str:
    """Return the version of NVIDIA's driver, empty where nothing tells it."""
    try:
        found = re.search(r"\b\d{3,}\.\d+(\.\d+)?\b", _DRIVER.read_text())
        if found:
            return found.group()
    except (OSError, UnicodeDecodeError):
        pass
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        told = subprocess.run(
            query, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return told.stdout.partition("\n")[0].strip()
