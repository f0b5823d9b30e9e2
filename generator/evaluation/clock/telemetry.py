"""NVML readings while a GPU is timed: clocks, power, throttle reasons."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

# of nvml.h: clocks event reasons
_REASONS = {
    "sw power cap": 0x4,
    "hw slowdown": 0x8,
    "sw thermal slowdown": 0x20,
    "hw thermal slowdown": 0x40,
    "hw power brake": 0x80,
}
_SLOWED = 0x8 | 0x20 | 0x40 | 0x80
"""A power cap is what the card is sold with; the others are not its usual state."""


@dataclass(frozen=True)
class Sample:
    """The GPU's state at one moment: clocks in MHz, power in watts."""

    reasons: int = 0
    sm_mhz: int = 0
    memory_mhz: int = 0
    watts: float = 0.0

    @property
    def is_throttled(self) -> bool:
        """Return whether heat or a failing supply slows the GPU down."""
        return bool(self.reasons & _SLOWED)

    def names(self) -> list[str]:
        """Return the reasons in words."""
        return [name for name, bit in _REASONS.items() if self.reasons & bit]


class Telemetry:
    """NVML's readings of a GPU; without NVML, or on a CPU, each is None."""

    def __init__(self, device: str) -> None:
        self._nvml: Any = None
        self._gpu: Any = None
        if device != "cuda":
            return
        try:
            self._nvml = importlib.import_module("pynvml")
            self._nvml.nvmlInit()
            unique = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
            self._gpu = self._nvml.nvmlDeviceGetHandleByUUID(unique)
        except Exception:  # noqa: BLE001 - an extra, of many versions and drivers
            self._gpu = None

    def driver(self) -> str:
        """Return the driver's version, empty where NVML does not say."""
        try:
            return str(self._nvml.nvmlSystemGetDriverVersion())
        except Exception:  # noqa: BLE001 - as above
            return ""

    def sample(self) -> Sample | None:
        """Return the state now, None where NVML does not say."""
        nvml, gpu = self._nvml, self._gpu
        if gpu is None:
            return None
        try:
            return Sample(
                int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)),
                int(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
                int(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM)),
                nvml.nvmlDeviceGetPowerUsage(gpu) / 1000.0,
            )
        except Exception:  # noqa: BLE001 - as above
            return None


def summary(samples: list[Sample], throttled: int) -> Mapping[str, Any]:
    """Return what the samples of a session come to, for its result."""
    if not samples:
        return {}
    return {
        "clocks_mhz": {
            "sm": _middle([s.sm_mhz for s in samples]),
            "sm_least": min(s.sm_mhz for s in samples),
            "memory": _middle([s.memory_mhz for s in samples]),
        },
        "power_watts": round(max(s.watts for s in samples), 1),
        "throttled": throttled,
        "throttle_reasons": sorted({n for s in samples for n in s.names()}),
    }


def _middle(values: list[int]) -> int:
    return sorted(values)[len(values) // 2]
