"""Memory that the judge shares with a solution's process: arguments, poison, outputs.

An arena has slots, each at an address of its own in the other process. The judge writes
inputs and poison from outside, and reads from outside what has become of both.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from kernel_judge.definition import TensorSpec
from kernel_judge.inputs.memory import dtype_of, shape_of

_ALIGNED, _GUARD = 256, 256
_PAGE = 1 << 16
_PATTERN = 0xA5
Place = dict[str, Any]


@dataclass(frozen=True)
class Layout:
    """The places of a call's arguments, in order.

    A place of a tensor has `at`, `bytes`, `dtype` and `shape`, one of a scalar `value`.
    One of a slice has `width` and `offset` too: elements of its rows, and before it.
    """

    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    size: int


@dataclass(frozen=True)
class Slices:
    """Elements of wider rows before and behind each row.

    `outputs` says whether outputs are slices as well; what is returned never is.
    """

    before: int
    behind: int
    outputs: bool = False


def laid_out(
    inputs: Mapping[str, Any],
    outputs: Mapping[str, TensorSpec],
    axes: Mapping[str, int],
    slices: Slices | None = None,
) -> Layout:
    """Return the layout of a call: of equal shapes, the same one each time.

    With `slices` all tensors of floats are slices of wider ones.
    """
    end = _GUARD

    def place(
        shape: tuple[int, ...], dtype: torch.dtype, slices: Slices | None
    ) -> Place:
        nonlocal end
        name = str(dtype).removeprefix("torch.")
        described: Place = {"at": end, "dtype": name, "shape": list(shape)}
        whole = shape
        if slices is not None and shape and dtype.is_floating_point:
            width = slices.before + shape[-1] + slices.behind
            described |= {"width": width, "offset": slices.before}
            whole = (*shape[:-1], width)
        described["bytes"] = math.prod(whole) * dtype.itemsize
        end = -(-(end + described["bytes"] + _GUARD) // _ALIGNED) * _ALIGNED
        return described

    places = tuple(
        place(tuple(value.shape), value.dtype, slices)
        if isinstance(value, torch.Tensor)
        else {"value": value}
        for value in inputs.values()
    )
    of_outputs = slices if slices is not None and slices.outputs else None
    made = tuple(
        {"value": None}
        if spec.shape is None
        else place(shape_of(spec, axes), dtype_of(spec.dtype), of_outputs)
        for spec in outputs.values()
    )
    return Layout(places, made, end)


def poison(tensor: torch.Tensor) -> None:
    """Fill a tensor with what no right output holds: NaN, or the least integer."""
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize > 1:
        tensor.fill_(math.nan)
    elif tensor.dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        tensor.fill_(torch.iinfo(tensor.dtype).min)
    else:
        # NaN of float8, and no value of a bool
        tensor.view(torch.uint8).fill_(0xFF)


@dataclass
class Slot:
    """One piece of shared memory, and what the judge wrote to it last."""

    size: int
    file: int = -1
    memory: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    written: list[torch.Tensor | None] = field(default_factory=list)
    _intact: dict[int, tuple[Place, torch.Tensor, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, size: int) -> Slot:
        """Make shared memory that nobody can shorten."""
        size = -(-size // _PAGE) * _PAGE
        file = os.memfd_create("arguments", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(file, size)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
        shared = mmap.mmap(file, size)
        return cls(size, file, torch.frombuffer(shared, dtype=torch.uint8))

    def close(self) -> None:
        """Give the descriptor back; the memory goes with the last who maps it."""
        os.close(self.file)

    def tensor(self, place: Place) -> torch.Tensor:
        """Return the tensor at a place; nobody copies."""
        flat = self._whole(place)
        if "width" not in place:
            return flat.view(place["shape"])
        begin, length = place["offset"], place["shape"][-1]
        wider = flat.view([*place["shape"][:-1], place["width"]])
        return wider[..., begin : begin + length]

    def _whole(self, place: Place) -> torch.Tensor:
        """Return all elements of a place, those between the rows of a slice included."""
        flat = self.memory[place["at"] : place["at"] + place["bytes"]]
        return flat.view(getattr(torch, place["dtype"]))

    def write(
        self,
        layout: Layout,
        inputs: Mapping[str, Any],
        stale: Sequence[Any] | None = None,
    ) -> None:
        """Write inputs, poison outputs, and a pattern around all of them.

        `stale` are the answers to other inputs, which are poison that looks like none. An
        input that was there after the last call is not copied again: `changed` compares it
        after this one as well.
        """
        self.written = []
        intact, self._intact = self._intact, {}
        for place in (*layout.inputs, *layout.outputs):
            if "width" in place:
                # what is no margin is written over
                poison(self._whole(place))
        for number, value in enumerate(inputs.values()):
            place = layout.inputs[number]
            if "at" not in place:
                self.written.append(None)
                continue
            if not _is_there(intact.get(number), place, value):
                self.tensor(place).copy_(value)
            self.written.append(value)
        for number, place in enumerate(layout.outputs):
            if "at" in place and stale is not None:
                self.tensor(place).copy_(stale[number])
            elif "at" in place:
                poison(self.tensor(place))
        for begin, end in _gaps(layout):
            self.memory[begin:end] = _PATTERN

    def changed(self, layout: Layout) -> list[int]:
        """Return the numbers of the inputs that are not any more as they were written."""
        changed = []
        for number, value in enumerate(self.written):
            place = layout.inputs[number]
            if value is None:
                continue
            if not _same(self.tensor(place), value):
                changed.append(number)
            elif "width" not in place:
                self._intact[number] = place, value, value._version
        return changed

    def is_overrun(self, layout: Layout) -> bool:
        """Return whether something was written beside the arguments."""
        return any(
            bool((self.memory[begin:end] != _PATTERN).any())
            for begin, end in _gaps(layout)
        ) or any(
            self._is_written(place)
            for place in (*layout.inputs, *layout.outputs)
            if "width" in place
        )

    def _is_written(self, place: Place) -> bool:
        """Return whether the elements between the rows of a slice are no poison any more."""
        rows = self._whole(place).view(-1, place["width"])
        pattern = torch.empty(place["width"], dtype=rows.dtype)
        poison(pattern)
        differs = rows.view(torch.uint8) != pattern.view(torch.uint8)
        size = rows.dtype.itemsize
        begin = place["offset"] * size
        differs[:, begin : begin + place["shape"][-1] * size] = False
        return bool(differs.any())

    def taken(self, place: Place) -> torch.Tensor:
        """Return a copy of the tensor at a place."""
        return self.tensor(place).clone()


def _is_there(
    known: tuple[Place, torch.Tensor, int] | None, place: Place, value: torch.Tensor
) -> bool:
    """Return whether a place holds this very value, which nobody changed since."""
    return (
        known is not None
        and known[0] == place
        and known[1] is value
        and known[2] == value._version
    )


def _gaps(layout: Layout) -> list[tuple[int, int]]:
    places = [p for p in (*layout.inputs, *layout.outputs) if "at" in p]
    begins = [place["at"] for place in places] + [layout.size]
    ends = [0, *(place["at"] + place["bytes"] for place in places)]
    return list(zip(ends, begins, strict=True))


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    a = first.reshape(-1).view(torch.uint8)
    if a.storage_offset() % 8:
        a = a.clone()
    b = second.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    if b.storage_offset() % 8:
        b = b.clone()
    whole = a.numel() // 8 * 8
    words = a[:whole].view(torch.int64), b[:whole].view(torch.int64)
    return torch.equal(*words) and torch.equal(a[whole:], b[whole:])
