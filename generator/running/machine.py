"""The machine that tests and recordings run on: its GPU, its driver, the versions."""

from __future__ import annotations

import platform
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import collect_env

from generator.dataset.libraries import versioned_as
from generator.running.provider_versions import version
from kernel_judge.checks.available import source_name
from kernel_judge.definition import Backend
from kernel_judge.provider import providers
from kernel_judge.providers import compute_capability

_DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True)
class RecordingMachine:
    """Properties of a machine that a kernel's outputs may depend on.

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
        return f"{source}@{self.versions.get(versioned_as(provider), '')}@{gpu}"

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


def this_machine(device: torch.device) -> RecordingMachine:
    """Return the machine that the process runs on, with the GPU that it uses."""
    versions, gpu, sm = _versions(), "CPU", None
    if device.type == "cuda":
        gpu, sm = torch.cuda.get_device_name(device), compute_capability(device)
        versions["driver"] = driver_version()
    return RecordingMachine(gpu, sm, versions, time.strftime("%Y-%m-%d", time.gmtime()))


def machine_facts(device: torch.device) -> dict[str, str]:
    """Return what a verdict may depend on: device, driver and versions, as text.

    No host name: a record that is kept says what the machine is, not which.
    """
    facts = {"device": device.type, "cpu": platform.machine()}
    hip = str(torch.version.hip or "")
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        facts |= {
            "gpu": properties.name,
            # what torch calls an AMD GPU's capability is no SM
            **(
                {"hip": hip} if hip else {"sm": f"{properties.major}{properties.minor}"}
            ),
            "memory_gib": f"{properties.total_memory / 2**30:.0f}",
            "driver": driver_version(),
        }
    return {**facts, "python": platform.python_version(), **_versions()}


def _versions() -> dict[str, str]:
    versions = {"torch": str(torch.__version__), "cuda": str(torch.version.cuda or "")}
    for provider in providers().values():
        if provider.module in versions:
            continue
        try:
            versions[provider.module] = version(provider.name)
        except Exception:  # noqa: BLE001 - not there, or not importable: no version
            versions[provider.module] = ""
    return versions


def driver_version() -> str:
    """Return the version of NVIDIA's driver, empty where nothing tells it."""
    try:
        version = re.search(r"\b\d{3,}\.\d+(\.\d+)?\b", _DRIVER.read_text())
        if version:
            return version.group()
    except (OSError, UnicodeDecodeError):
        pass
    # no such file on WSL: torch asks nvidia-smi
    asked = collect_env.get_nvidia_driver_version(collect_env.run)  # type: ignore[no-untyped-call]
    return str(asked or "")
