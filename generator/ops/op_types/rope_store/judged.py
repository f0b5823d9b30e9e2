"""Cases that only solutions are asked: tokens of any number, in a cache of three times as many slots."""

from __future__ import annotations

from kernel_judge.definition import Definition

_POSITIONS, _SLOTS = 300, 3


def rows_axes(definition: Definition, rows: int) -> dict[str, int]:
    """Return the axes of a call with so many tokens."""
    return {
        "num_tokens": rows,
        "max_seq_len": _POSITIONS,
        "num_slots": _SLOTS * rows,
    }
