"""Inputs as engines hand them over: slices of wider rows, as q, k and v of a projection.

Between the rows lies poison: NaN in floating-point tensors, -1 or 255 in integer ones.
"""

from __future__ import annotations

from typing import Any

import torch

_BEFORE, _BEHIND = 16, 8
"""Elements beside a row: 16 before it, so that it begins where 16 bytes are aligned."""
_POISON = 0xFF
_MOST_BYTES = 64 << 20


def can_be_wider(value: Any) -> bool:
    """Return whether a value is a tensor with rows, of 64 MiB at most."""
    is_tensor = isinstance(value, torch.Tensor)
    return is_tensor and value.ndim > 0 and 0 < value.nbytes <= _MOST_BYTES


def view_of_wider(value: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor whose rows, along its last axis, lie apart in a buffer."""
    *rows, length = value.shape
    wide = (*rows, _BEFORE + length + _BEHIND)
    buffer = torch.empty(wide, dtype=value.dtype, device=value.device)
    buffer.view(torch.uint8).fill_(_poison(value))
    view = buffer[..., _BEFORE : _BEFORE + length]
    view.copy_(value)
    return view


def is_poison_around(view: torch.Tensor) -> bool:
    """Return whether what lies between the rows of such a view is as it was made."""
    assert view._base is not None
    around = view._base.view(torch.uint8) != _poison(view)
    size = view.element_size()
    around[..., _BEFORE * size : (_BEFORE + view.shape[-1]) * size] = False
    return not bool(around.any())


def _poison(value: torch.Tensor) -> int:
    return 1 if value.dtype == torch.bool else _POISON
