"""Parts of an output that were never computed, where a tolerance lets some elements be wrong.

Codes and products of 8 bits differ between right kernels in a share of all elements, which
lie anywhere. What a kernel leaves out lies together: a row, a column, a tile.
"""

from __future__ import annotations

import math

import torch

from kernel_judge.comparison.tolerance import Tolerance

# more than three quarters of 8 are wrong by chance with 2e-10 where 3 % are, of 16 with 1e-8
# where 15 % are; zeros are right where values are as small as the tolerance
_FEW, _MANY, _OFTEN = 8, 16, 0.05
_SHARE = 0.75


def left_out(actual: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> str:
    """Return where elements that lie together are wrong, empty where they are not.

    Both are of one shape. Looked at are rows of the last axis of 16 elements or more,
    and 8 adjacent indices of every other axis, 16 where over a twentieth of elements
    may be wrong.
    """
    if tolerance.hit_ratio >= 1.0 or not expected.dim() or not expected.numel():
        return ""
    a, e = actual.double(), expected.double().to(actual.device)
    wrong = ((a - e).abs() > tolerance.allowed(e)).float()
    last = wrong.dim() - 1
    adjacent = _FEW if tolerance.hit_ratio >= 1.0 - _OFTEN else _MANY
    for axis, length in enumerate(wrong.shape):
        few, least = (length, _MANY) if axis == last else (adjacent, adjacent)
        if length < least:
            continue
        # the last part begins earlier where the length is no multiple
        begins = [*range(0, length - few + 1, few), length - few]
        for begin in dict.fromkeys(begins):
            share = wrong.narrow(axis, begin, few).mean(dim=axis)
            if float(share.max()) > _SHARE:
                return _said(share, axis, begin, few)
    return ""


def _said(share: torch.Tensor, axis: int, begin: int, few: int) -> str:
    """Return the place of the worst part in words."""
    place = [int(n) for n in torch.unravel_index(share.argmax(), share.shape)]
    index = [str(n) for n in place]
    index.insert(axis, f"{begin}:{begin + few}")
    count = math.ceil(float(share.max()) * few)
    return (
        f"{count} of {few} elements are wrong that lie together, at [{', '.join(index)}]: "
        "a share of elements may be, not a part"
    )
