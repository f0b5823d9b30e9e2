"""What 16-bit and 8-bit tensors were before they were rounded, in float64."""

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
    """Return whether a value is a tensor of fewer bits than float32 has."""
    return isinstance(value, torch.Tensor) and value.dtype in NARROW


class Unrounded:
    """Keep a float64 copy of the storages that rounded values were written to.

    By storage, not by tensor: what is written through a view is known of the whole.
    """

    def __init__(self) -> None:
        # the storage is kept as well, lest its address be another's
        self._kept: dict[_Key, tuple[torch.UntypedStorage, torch.Tensor]] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return a tensor's values before rounding, a view of them, if there are any.

        Writing to it is recording what was written to the tensor.
        """
        kept = self._kept.get(_key(tensor))
        if kept is None or tensor.numel() == 0:
            return None
        view: torch.Tensor = kept[1].as_strided(
            tensor.size(), tensor.stride(), tensor.storage_offset()
        )
        return view

    def begin(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the same, from now on also of a storage of which nothing was known."""
        if tensor.numel() and _key(tensor) not in self._kept:
            storage = tensor.untyped_storage()
            flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            flat.set_(storage)
            self._kept[_key(tensor)] = (storage, flat.double())
        found = self.of(tensor)
        return tensor.double() if found is None else found

    def final(self, value: Any) -> Any:
        """Return an output in float64, before its last rounding where that is known.

        It is not where something was written that nobody saw: then the values that are
        kept don't round to those of the tensor, which are returned as they are.
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
