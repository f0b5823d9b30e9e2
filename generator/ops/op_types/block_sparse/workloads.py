"""Workloads of attention over blocks: lengths of captured prefills, blocks made up."""

from __future__ import annotations

import random
from collections.abc import Sequence

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import (
    MEMORY_LIMIT,
    Structure,
    distinct,
    fits_a_blob,
    split,
)
from generator.ops.workloads.traffic import Step

# blocks of keys that a query of a causal model chooses, its own among them
_CHOSEN = 16
# queries of a workload whose mask is in its blob
_MASKED = 24
# blocks into which queries and keys are cut where sizes vary
_VARIABLE = 8


def some_blocks(
    spec: Spec, captured: CapturedWorkload, rng: random.Random
) -> Structure:
    """Return blocks of the captured sequence of which each row sees some."""
    rows, columns = (_blocks(spec, captured, n) for n in ("rows", "columns"))
    chosen = [
        distinct(rng.randint(1, min(columns, _CHOSEN)), columns, rng)
        for _ in range(rows)
    ]
    return _structure(chosen, columns, {})


def causal_blocks(
    spec: Spec, captured: CapturedWorkload, rng: random.Random
) -> Structure:
    """Return the last queries of the captured sequence: own block, and some before it."""
    length, columns = spec.const("block_columns"), _blocks(spec, captured, "columns")
    end = captured.axes["total_kv"]
    positions = range(max(end - _MASKED, 0), end)
    chosen = []
    for position in positions:
        block = position // length
        picked = [*distinct(min(block, _CHOSEN - 1), block, rng), block]
        rng.shuffle(picked)
        chosen.append(picked)
    mask = [
        column * length + key <= position
        for position, row in zip(positions, chosen, strict=True)
        for column in row
        for key in range(length)
    ]
    return _structure(chosen, columns, {"mask": mask})


def _structure(
    chosen: Sequence[Sequence[int]], columns: int, more: dict[str, list[bool]]
) -> Structure:
    starts = [0]
    for row in chosen:
        starts.append(starts[-1] + len(row))
    axes = {
        "num_block_rows": len(chosen),
        "num_block_columns": columns,
        "len_indptr": len(starts),
        "num_blocks": starts[-1],
    }
    indices = [column for row in chosen for column in row]
    return Structure(axes, {"indptr": starts, "indices": indices, **more})


def blocks_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the blocks' numbers, and a mask, fit in a blob.

    Without a mask, a sequence of one block is as any other of one block.
    """
    if isinstance(captured, Step):
        # the longest video has 80 KB of numbers
        return True
    if "mask" in spec.inputs:
        return fits_a_blob(_MASKED * (_CHOSEN * (4 + spec.const("block_columns")) + 4))
    several = _blocks(spec, captured, "columns") > 1
    return several and fits_a_blob(
        4 * (_CHOSEN + 1) * (_blocks(spec, captured, "rows") + 1)
    )


def _blocks(spec: Spec, captured: CapturedWorkload, axis: str) -> int:
    tokens = captured.axes["total_q" if axis == "rows" else "total_kv"]
    return -(-tokens // spec.const(f"block_{axis}"))


def sizes(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return blocks of the captured lengths whose sizes vary by KV head."""
    heads = spec.const("num_kv_heads")
    q_len, kv_len = captured.axes["total_q"], captured.axes["total_kv"]
    rows, columns = min(q_len, _VARIABLE), min(kv_len, _VARIABLE)
    mask: list[int] = []
    for _ in range(heads * rows):
        chosen = distinct(rng.randint(1, columns), columns, rng)
        mask += [column in chosen for column in range(columns)]
    cut = {"block_row_sz": (q_len, rows), "block_col_sz": (kv_len, columns)}
    tensors: dict[str, list[int]] = {"block_mask": mask}
    for name, (total, parts) in cut.items():
        tensors[name] = [
            size for _ in range(heads) for size in split(total, parts, 1, rng)
        ]
    axes = {
        "q_len": q_len,
        "kv_len": kv_len,
        "num_block_rows": rows,
        "num_block_columns": columns,
    }
    return Structure(axes, tensors)


def sizes_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether one head's logits and mask fit in memory."""
    return 5 * captured.axes["total_q"] * captured.axes["total_kv"] <= MEMORY_LIMIT
