"""Large weights that are views of one short stream until a callee asks.

Drawing 64 GB of weights element by element would take minutes, and holding them beside
the copies of every callee would not fit. Row r of expert e is the window of the stream
that begins at EXPERT_STEP·e + ROW_STEP·r: experts, rows and columns all differ, and
making a tensor of it moves data without any arithmetic. A table without experts has rows
and columns alone.
"""

from __future__ import annotations

from typing import Any

import torch

# multiples of 32, so that blocks of 32 elements with one scale stay whole
ROW_STEP = 32
EXPERT_STEP = 32 * 613
# moving bits, not numbers: not every operation knows float8, and words are faster
_INTEGERS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}


class Tiled:
    """A contiguous tensor ([experts,] rows, columns) that isn't made yet."""

    def __init__(self, base: torch.Tensor, shape: tuple[int, ...]) -> None:
        if base.shape != (base_length(shape),):
            raise ValueError(f"{base_length(shape)} elements are needed for {shape}")
        self.base = base
        self.shape = shape

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype of the elements."""
        return self.base.dtype

    @property
    def device(self) -> torch.device:
        """Return where the stream lies."""
        return self.base.device

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, place: int) -> torch.Tensor:
        """Return one expert's matrix, or a row: contiguous, on the stream's device."""
        if not 0 <= place < self.shape[0]:
            raise IndexError(f"{place} of {self.shape[0]}")
        return _whole(self._windows()[place]).view(self.dtype)

    def on(self, device: torch.device) -> Tiled:
        """Return the same stand-in with a stream of its own on a device."""
        return Tiled(self.base.to(device, copy=True), self.shape)

    def tensor(self, device: torch.device) -> torch.Tensor:
        """Return the tensor on a device; the host never holds it for another one."""
        return _whole(self.on(device)._windows()).view(self.dtype)

    def same_bits(self, other: torch.Tensor) -> bool:
        """Return whether a tensor has exactly these elements, a part at a time."""
        if tuple(other.shape) != self.shape or other.dtype != self.dtype:
            return False
        here = self.on(other.device)._windows()
        length = 1 if len(self.shape) == 3 else 4096
        parts = zip(
            torch.split(here, length),
            torch.split(other.view(here.dtype), length),
            strict=True,
        )
        if other.device.type == "cpu":
            return all(torch.equal(window, part) for window, part in parts)
        # a GPU is waited for once, not once a part
        return not torch.stack([(one != two).any() for one, two in parts]).any()

    def _windows(self) -> torch.Tensor:
        """Return all elements as words of their bits, without making them."""
        row = self.shape[-1] * self.dtype.itemsize
        # the widest that fits; the element's own size divides a row
        size = next(n for n in _INTEGERS if row % n == 0)
        each = size // self.dtype.itemsize
        strides = [max(step // each, 1) for step in _strides(self.shape)]
        bits = self.base.view(_INTEGERS[size])
        return bits.as_strided((*self.shape[:-1], self.shape[-1] // each), strides)


def base_length(shape: tuple[int, ...]) -> int:
    """Return how many elements the windows of a shape cover."""
    return 1 + sum(
        step * (n - 1) for step, n in zip(_strides(shape), shape, strict=True)
    )


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (EXPERT_STEP, ROW_STEP, 1)[-len(shape) :]


def _whole(windows: torch.Tensor) -> torch.Tensor:
    return windows.clone(memory_format=torch.contiguous_format)


def fresh(value: Any, device: torch.device) -> Any:
    """Return an input's own copy on a device, a tensor where it is a stand-in."""
    return value.tensor(device) if isinstance(value, Tiled) else _copied(value, device)


def lazy(value: Any, device: torch.device) -> Any:
    """Return an input's own copy on a device; a stand-in stays one."""
    return value.on(device) if isinstance(value, Tiled) else _copied(value, device)


def on_cpu(value: Any, is_whole: bool) -> Any:
    """Return an input's own copy on the CPU; of a stand-in, unless whole, its windows."""
    if isinstance(value, Tiled) and not is_whole:
        return value.on(torch.device("cpu"))._windows().view(value.dtype)
    return fresh(value, torch.device("cpu"))


def _copied(value: Any, device: torch.device) -> Any:
    return value.to(device, copy=True) if isinstance(value, torch.Tensor) else value
