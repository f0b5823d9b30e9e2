"""Keep the float64 values of 16-bit and 8-bit tensors before they were rounded."""

from __future__ import annotations

from typing import Any

import torch

NARROW = frozenset(
    dtype
    for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")
    if isinstance(dtype := getattr(torch, name, None), torch.dtype)
)
_Key = tuple[int, torch.dtype]


def is_narrow(value: Any) -> bool:
    """Return whether a value is a floating-point tensor of at most 16 bits."""
    return isinstance(value, torch.Tensor) and value.dtype in NARROW


class Unrounded:
    """A mode that keeps a float64 copy of each storage of rounded values.

    By storage, not by tensor: a write through a view changes the base as well.
    """

    def __init__(self) -> None:
        # keep the storage alive, so that its address is not reused
        self._kept: dict[_Key, tuple[torch.UntypedStorage, torch.Tensor]] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return a float64 view of a tensor's values before rounding, None if unknown.

        A write to the tensor must be repeated on the view.
        """
        exact = self._kept.get(_key(tensor))
        if exact is None or tensor.numel() == 0:
            return None
        view: torch.Tensor = exact[1].as_strided(
            tensor.size(), tensor.stride(), tensor.storage_offset()
        )
        return view

    def begin(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the same view; begin with the rounded values if they are unknown."""
        if tensor.numel() and _key(tensor) not in self._kept:
            storage = tensor.untyped_storage()
            flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            flat.set_(storage)
            self._kept[_key(tensor)] = (storage, flat.double())
        exact = self.of(tensor)
        return tensor.double() if exact is None else exact

    def final(self, value: Any) -> Any:
        """Return an output in float64, before its last rounding if that is known.

        After a write that was not recorded, the kept values don't round to those of the
        tensor; then the tensor's own values are returned.
        """
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        known = self.of(value) if is_narrow(value) else None
        if known is None or not _same(known.to(value.dtype), value):
            return value.double()
        return known.clone()


def _key(tensor: torch.Tensor) -> _Key:
    return tensor.untyped_storage().data_ptr(), tensor.dtype


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    a, b = first.double(), second.double()
    return bool(((a == b) | (a.isnan() & b.isnan())).all())
