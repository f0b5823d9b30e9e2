"""The case that only solutions are asked: pages of more tokens than kernels are made for."""

from __future__ import annotations

from generator.ops.op_types.page_append.inputs import append_axes
from kernel_judge.definition import Case, Definition

_PAGE_SIZE = 208
# (length after the append, of it new) of each sequence
_LENGTHS = ((1, 1), (208, 3), (209, 209), (500, 131), (417, 1))


def cases(definition: Definition) -> list[Case]:
    """Return appends to long pages, where a page's size is no constant."""
    if "page_size" in definition.axes:
        return []
    kv_lens, new = (tuple(part) for part in zip(*_LENGTHS, strict=True))
    axes = append_axes(kv_lens, new, _PAGE_SIZE)
    params = {"kv_lens": kv_lens, "new": new, "shuffled": True}
    return [Case("long-pages", "small", axes, params)]
