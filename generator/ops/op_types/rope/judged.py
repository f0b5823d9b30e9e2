"""Cases that only solutions are asked: tokens of any number."""

from __future__ import annotations

from kernel_judge.definition import Definition

# heads and positions of the cache, where calls have theirs
_HEADS = {"num_qo_heads": 12, "num_kv_heads": 2, "max_seq_len": 300}


def rows_axes(definition: Definition, rows: int) -> dict[str, int]:
    """Return the axes of a call with so many tokens."""
    if "pos_ids" in definition.interface.inputs:
        return {"num_tokens": rows}
    return {"num_tokens": rows, **_HEADS}
