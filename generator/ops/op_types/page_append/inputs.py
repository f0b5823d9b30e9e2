"""The inputs of an append: sequences of which the last tokens are new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from generator.ops.op_types.page_append.names import ROWS
from generator.ops.paging import SPARE_PAGES, page_counts, page_table
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def append_axes(
    kv_lens: Sequence[int], new: Sequence[int], page_size: int
) -> dict[str, int]:
    """Return the variable axes for lengths after the append, `new` of them appended."""
    pages = sum(page_counts(kv_lens, page_size))
    return {
        "nnz_kv": sum(new),
        "num_pages": pages + SPARE_PAGES,
        "batch_size": len(kv_lens),
        "len_indptr": len(kv_lens) + 1,
        "num_kv_indices": pages,
        "page_size": page_size,
    }


def append_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return rows, full caches and the table of pages in random order.

    Rows bfloat16 [nnz_kv, …], caches bfloat16 as the definition declares them, all
    slots filled; batch_indices, positions and the table int32. The rows stand in
    random order where the case says `shuffled`.
    """
    axes = {**definition.axes, **case.axes}
    kv_lens, new = case.params["kv_lens"], case.params["new"]
    table = page_table(kv_lens, axes["page_size"], axes["num_pages"], stream)
    pairs = [
        (sequence, kv_len - count + i)
        for sequence, (kv_len, count) in enumerate(zip(kv_lens, new, strict=True))
        for i in range(count)
    ]
    if case.params.get("shuffled"):
        pairs = [pairs[i] for i in stream.child("rows").permutation(len(pairs))]
    sequences, positions = zip(*pairs, strict=True)
    inputs: dict[str, Any] = {
        "batch_indices": torch.tensor(sequences, dtype=torch.int32),
        "positions": torch.tensor(positions, dtype=torch.int32),
        "kv_indices": table.indices,
        "kv_indptr": table.indptr,
        "kv_last_page_len": table.last_page_len,
    }
    for name, spec in definition.interface.input_specs.items():
        if name in ROWS or name in ROWS.values():
            shape = [axes[axis] for axis in spec.shape or ()]
            inputs[name] = stream.child(name).values(shape, 1.0, torch.bfloat16)
    return {name: inputs[name] for name in definition.interface.inputs}
