"""The speed of light: what a device needs at least for the work of a call.

The larger of two times: the bytes at the memory's bandwidth, and the operations at the
peak of their dtype. Peaks are the datasheets', without sparsity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from generator.ops.work import Work, work_of
from kernel_judge.definition import Definition


@dataclass(frozen=True)
class Peak:
    """A device's peaks: bytes per second, and operations per second by dtype.

    `float8` and `float4` stand for all formats of that many bits. `source` says where
    the figures were read.
    """

    bandwidth: float
    flops: Mapping[str, float]
    source: str


def _peak(
    bandwidth: float, half: float, tf32: float, source: str, **more: float
) -> Peak:
    """Return a peak of TB/s and TFLOP/s; products of float32 may use TF32."""
    flops = {"bfloat16": half, "float16": half, "float32": tf32, **more}
    return Peak(1e12 * bandwidth, {n: 1e12 * v for n, v in flops.items()}, source)


_A100 = "NVIDIA A100 datasheet, nvidia-us-2188504-web (2022)"
_H100 = "NVIDIA H100 datasheet, 2430615 (2023), halved for dense"
_H200 = "NVIDIA H200 datasheet, 3002446 (2024), halved for dense"
_B200 = "NVIDIA DGX B200 datasheet (2024), an eighth, halved for dense"
_L40S = "NVIDIA L40S datasheet, 2671850 (2023), dense"
_L4 = "NVIDIA L4 datasheet, 2634820 (2023), halved for dense"
_ADA = "NVIDIA Ada GPU architecture whitepaper 2.1, appendix A, dense"
_RTX = "NVIDIA RTX Blackwell GPU architecture whitepaper 1.1, appendix A, dense"
# a name that begins another one comes after it
PEAKS: Mapping[str, Peak] = {
    "NVIDIA A100-SXM4-40GB": _peak(1.555, 312.0, 156.0, _A100),
    "NVIDIA A100-SXM4-80GB": _peak(2.039, 312.0, 156.0, _A100),
    "NVIDIA A100 80GB PCIe": _peak(1.935, 312.0, 156.0, _A100),
    "NVIDIA A100-PCIE-40GB": _peak(1.555, 312.0, 156.0, _A100),
    "NVIDIA H100 80GB HBM3": _peak(3.35, 989.5, 494.7, _H100, float8=1979.0),
    "NVIDIA H100 PCIe": _peak(2.0, 756.5, 378.0, _H100, float8=1513.0),
    "NVIDIA H100 NVL": _peak(3.9, 835.5, 417.5, _H100, float8=1670.5),
    "NVIDIA H200 NVL": _peak(4.8, 835.5, 417.5, _H200, float8=1670.5),
    "NVIDIA H200": _peak(4.8, 989.5, 494.7, _H200, float8=1979.0),
    "NVIDIA B200": _peak(8.0, 2250.0, 1125.0, _B200, float8=4500.0, float4=9000.0),
    "NVIDIA L40S": _peak(0.864, 362.1, 183.0, _L40S, float8=733.0),
    "NVIDIA L4": _peak(0.3, 121.0, 60.0, _L4, float8=242.5),
    "NVIDIA GeForce RTX 4090": _peak(1.008, 330.3, 82.6, _ADA, float8=660.6),
    "NVIDIA GeForce RTX 5090": _peak(
        1.792, 419.0, 104.8, _RTX, float8=838.0, float4=1676.0
    ),
}
"""By the beginning of the device's name as CUDA has it."""

_FASTER_CLOCK = 1.12
"""What a card may clock above the boost of its datasheet (an H100: 1980 to 1830 MHz)."""


@dataclass(frozen=True)
class Light:
    """The bound of a call in milliseconds, and what it follows from.

    Attributes:
        milliseconds: the larger of `memory` and `compute`.
        least: below this no time is possible: the inputs are not in the cache, but
            outputs may stay there, and a card may clock above its datasheet.
    """

    milliseconds: float
    memory: float
    compute: float
    least: float
    read: int
    written: int
    flops: int
    source: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


def light_of(
    definition: Definition,
    axes: Mapping[str, int],
    inputs: Mapping[str, Any],
    device: str,
) -> Light | None:
    """Return the bound on this device, None for one whose peaks are not known."""
    if device != "cuda":
        return None
    peak = peak_of(torch.cuda.get_device_name(0))
    return None if peak is None else light_by(peak, definition, axes, inputs)


def light_by(
    peak: Peak,
    definition: Definition,
    axes: Mapping[str, int],
    inputs: Mapping[str, Any],
) -> Light:
    """Return the bound of a call on this GPU, by these peaks."""
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    return bound(work_of(definition, axes, inputs), peak, l2_bytes)


def peak_of(name: str) -> Peak | None:
    """Return the peaks of a device by its name, None for one that is not known."""
    return next((p for begin, p in PEAKS.items() if name.startswith(begin)), None)


def bound(work: Work, peak: Peak, l2_bytes: int) -> Light:
    """Return the least time of some work."""
    memory = 1e3 * (work.read + work.written) / peak.bandwidth
    compute = 1e3 * sum(n / _rate(peak, dtype) for dtype, n in work.flops.items())
    surely = work.read + max(work.written - l2_bytes, 0)
    least = max(1e3 * surely / peak.bandwidth, compute / _FASTER_CLOCK)
    return Light(
        max(memory, compute),
        memory,
        compute,
        least,
        work.read,
        work.written,
        sum(work.flops.values()),
        peak.source,
    )


def too_fast(milliseconds: float, light: Light) -> str:
    """Return why a time is impossible, empty where it is not."""
    if milliseconds >= light.least:
        return ""
    return (
        f"{milliseconds:.4f} ms is faster than light: {light.read} bytes to read and "
        f"{light.flops} operations take {light.least:.4f} ms ({light.source})"
    )


def _rate(peak: Peak, dtype: str) -> float:
    """Return operations per second of a dtype; the device's fastest for one it lacks."""
    name = next((b for b in ("float8", "float4") if dtype.startswith(b)), dtype)
    return peak.flops.get(name) or max(peak.flops.values())
