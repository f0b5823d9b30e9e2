"""A card's measured peaks: the bandwidth of large memory, the rate of large products by dtype.

A datasheet says what no work exceeds; this says what large work reaches on this card,
with its clocks. Each run is timed as a call is: alone, after a pause, launched while the
device is held, with nothing of it in the L2. So the power limit, which work without a
pause runs into, lowers a peak no more than it slows a call. Products are of several shapes,
of weights as a layer has them, and both formats of 16 bits have the greater rate of the two:
the same units compute them. It is measured once, before a solution's code is loaded,
and kept in the user's cache. No time is refused by it.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

import torch

from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import read_bytes
from generator.evaluation.clock.light import Peak
from generator.evaluation.clock.telemetry import Telemetry
from generator.execution.cache_key import default_folder

_COPIED_BYTES = 1 << 30
# rows, columns, and what is summed over. A larger product has more waves of blocks, a
# smaller one takes less power; that of 48 times 22 blocks of 128 by 256 fills 132
# multiprocessors eight times over
SHAPES = (
    (4096, 4096, 4096),
    (8192, 4096, 4096),
    (6144, 5632, 4096),
    (8192, 8192, 8192),
)
# room for a copy's two ends, or for a product of float32
_ROOM_BYTES = 4 << 30
_HALVES = ("bfloat16", "float16")
_DTYPES = (*_HALVES, "float32", "float8")
# clocks rise within some tens of milliseconds of work
_WARM_SECONDS, _SECONDS, _LEAST = 0.06, 0.04, 5
_PAUSE_SECONDS, _HELD_CYCLES, _EVICTED_BYTES = 2e-3, 800_000, 256 << 20
_HOW = "alone, after a pause, the best of four shapes"
"""What is kept with peaks: those that were measured otherwise are measured again."""
_BUSY = 1.2
"""Median over best, from which on somebody else uses the card."""

Run = Callable[[], Any]
Shape = tuple[int, int, int]
_cuda: Any = torch.cuda


class Device(Protocol):
    """A device on which large work is timed."""

    def about(self) -> dict[str, str]:
        """Return what its figures belong to: device, driver and torch."""

    def moves(self) -> Sequence[tuple[int, Run]]:
        """Return works on memory with their bytes, none where there is no room."""

    def product(self, dtype: str, shape: Shape) -> Run | None:
        """Return a product of two matrices, None for a dtype that it lacks."""

    def seconds(self, run: Run) -> float:
        """Return how long a run took on the device."""


class CudaDevice:
    """The first GPU of this process."""

    @cached_property
    def _evicted(self) -> torch.Tensor:
        """Return memory that is larger than the L2, where something is measured."""
        return torch.empty(_EVICTED_BYTES, dtype=torch.uint8, device="cuda")

    def about(self) -> dict[str, str]:
        """Return its name, the driver's version where NVML is there, and torch's."""
        return {
            "device": torch.cuda.get_device_name(0),
            "driver": Telemetry("cuda").driver(),
            "torch": torch.__version__,
        }

    def moves(self) -> Sequence[tuple[int, Run]]:
        """Return a copy and a sum, by kernels of torch: some memory is faster to read."""
        if torch.cuda.mem_get_info()[0] < _ROOM_BYTES:
            return ()
        source = torch.ones(_COPIED_BYTES // 8, dtype=torch.int64, device="cuda")
        target = torch.empty_like(source)
        floats = source.view(torch.float32)
        return (
            (2 * _COPIED_BYTES, lambda: torch.bitwise_xor(source, 0, out=target)),
            (_COPIED_BYTES, lambda: torch.sum(floats)),
        )

    def product(self, dtype: str, shape: Shape) -> Run | None:
        """Return a product by cuBLAS; float32 by TF32, as its peak is stated."""
        if torch.cuda.mem_get_info()[0] < _ROOM_BYTES:
            return None
        rows, columns, depth = shape
        a, b = (torch.randn(n, depth, device="cuda") for n in (rows, columns))
        if dtype != "float8":
            a, b = (one.to(getattr(torch, dtype)) for one in (a, b))
            out = a.new_empty(rows, columns)
            return lambda: torch.mm(a, b.t(), out=out)
        eight, scale = torch.float8_e4m3fn, torch.ones((), device="cuda")
        a, b = a.to(eight), b.to(eight)

        def multiply() -> None:
            torch._scaled_mm(a, b.t(), scale, scale, out_dtype=torch.bfloat16)

        try:
            multiply()
        except (RuntimeError, ValueError):
            return None
        return multiply

    def seconds(self, run: Run) -> float:
        """Return what two events say, of which none waits for a launch."""
        begin, end = (_cuda.Event(enable_timing=True) for _ in range(2))
        evicted = self._evicted
        time.sleep(_PAUSE_SECONDS)
        _cuda._sleep(_HELD_CYCLES)
        evicted.fill_(1)
        begin.record()
        run()
        end.record()
        end.synchronize()
        return 1e-3 * float(begin.elapsed_time(end))


@cache
def measured_peak(device: str) -> Peak | None:
    """Return the measured peaks of this process's GPU, kept or measured now.

    None on a CPU, without room, and while somebody else uses the card: nothing that is
    decided depends on it.
    """
    if device != "cuda":
        return None
    properties = torch.cuda.get_device_properties(0)
    # torch before 2.4 does not know it
    name = f"{getattr(properties, 'uuid', properties.name)}.json"
    # what another process takes meanwhile may leave no room
    with _tf32(), suppress(RuntimeError):
        try:
            return kept_peak(CudaDevice(), default_folder().parent / "peaks", name)
        finally:
            torch.cuda.empty_cache()
    return None


def kept_peak(device: Device, folder: Path, name: str) -> Peak | None:
    """Return a device's peaks from a file of a folder, else measure and keep them.

    A file of another device, driver or torch version is not used: it is measured again.
    """
    about = {**device.about(), "how": _HOW}
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        value = json.loads(read_bytes(folder, name))
        if {key: value[key] for key in about} == about:
            return _peak(value)
    figures = measure(device)
    if figures is None:
        return None
    date = datetime.now(timezone.utc).date().isoformat()
    value = {**about, "date": date, **figures}
    with suppress(OSError):
        write_below(folder, name, (json.dumps(value, indent=1) + "\n").encode())
    return _peak(value)


def measure(device: Device) -> dict[str, Any] | None:
    """Return bytes a second, and operations a second by dtype; None where it is busy."""
    bandwidth = 0.0
    for size, run in device.moves():
        best = _best(device, run, warms=not bandwidth)
        if best is None:
            return None
        bandwidth = max(size / best, bandwidth)
        # its memory goes before products need some
        del run
    flops: dict[str, float] = {}
    for dtype in _DTYPES:
        for shape in SHAPES:
            product = device.product(dtype, shape)
            if product is None:
                continue
            best = _best(device, product, warms=dtype not in flops)
            if best is None:
                return None
            flops[dtype] = max(2 * math.prod(shape) / best, flops.get(dtype, 0.0))
    halves = [flops[dtype] for dtype in _HALVES if dtype in flops]
    flops |= {dtype: max(halves) for dtype in _HALVES if dtype in flops}
    return {"bandwidth": bandwidth, "flops": flops} if bandwidth and flops else None


def _best(device: Device, run: Run, *, warms: bool) -> float | None:
    """Return the seconds of the fastest run, None where the others are far from it."""
    device.seconds(run)
    end = time.monotonic() + _WARM_SECONDS
    while warms and time.monotonic() < end:
        device.seconds(run)
    taken: list[float] = []
    end = time.monotonic() + _SECONDS
    while len(taken) < _LEAST or time.monotonic() < end:
        taken.append(device.seconds(run))
    best = min(taken)
    return best if statistics.median(taken) <= _BUSY * best else None


def _peak(value: Mapping[str, Any]) -> Peak:
    flops = {str(dtype): float(rate) for dtype, rate in value["flops"].items()}
    bandwidth = float(value["bandwidth"])
    rates = (bandwidth, *flops.values())
    if not flops or not all(0.0 < rate < math.inf for rate in rates):
        raise ValueError("a peak is above 0")
    driver = f"driver {value['driver']}, " if value["driver"] else ""
    source = (
        f"measured on {value['device']}, {driver}torch {value['torch']}, "
        f"{value['date']}, {value['how']}"
    )
    return Peak(bandwidth, flops, source)


@contextmanager
def _tf32() -> Iterator[None]:
    usual = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(usual)
