"""The inputs of attention over blocks: which blocks, and how large they are."""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.attention.cases import scale_of
from generator.ops.op_types.block_sparse.dense import is_variable
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

# blocks that a query of a causal model chooses, its own among them
CHOSEN = 16


def sparse_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; blocks of a row stand in random order.

    q, k and v bfloat16 as the definition declares them, sm_scale float; indptr and
    indices int32, mask bool; or block_mask bool and the blocks' sizes int32.
    """
    axes = {**definition.axes, **case.axes}
    stds = {"q": case.params["q_std"], "k": 1.0, "v": 1.0}
    inputs: dict[str, Any] = {"sm_scale": scale_of(case, axes["head_dim"])}
    for name, std in stds.items():
        shape = [axes[a] for a in definition.interface.input_specs[name].shape or ()]
        inputs[name] = stream.child(name).values(shape, std, torch.bfloat16)
    if is_variable(definition):
        inputs |= _variable_blocks(axes, stream)
    elif "mask" in definition.interface.inputs:
        inputs |= _causal_blocks(axes, case, stream)
    else:
        inputs |= chosen_blocks(
            rows_of(case, axes["num_block_columns"], stream.child("rows"))
        )
    return {name: inputs[name] for name in definition.interface.inputs}


def rows_of(case: Case, columns: int, stream: Stream) -> list[list[int]]:
    """Return the columns of each block row of a case, as many as its params say."""
    return [
        stream.child(str(row)).permutation(columns)[:count].tolist()
        for row, count in enumerate(case.params["counts"])
    ]


def chosen_blocks(rows: list[list[int]]) -> dict[str, Any]:
    """Return indptr and indices, int32, of the columns of each block row."""
    ends = torch.tensor([0, *map(len, rows)]).cumsum(0)
    chosen = [column for row in rows for column in row]
    return {
        "indptr": ends.to(torch.int32),
        "indices": torch.tensor(chosen, dtype=torch.int32),
    }


def causal_rows(positions: list[int], length: int, stream: Stream) -> list[list[int]]:
    """Return each query's own block of `length` keys and some before it, in any order."""
    rows = []
    for row, position in enumerate(positions):
        own, draw = position // length, stream.child(str(row))
        chosen = [*draw.permutation(own)[: CHOSEN - 1].tolist(), own]
        order = draw.child("order").permutation(len(chosen))
        rows.append([chosen[i] for i in order])
    return rows


def causal_mask(
    rows: list[list[int]], positions: list[int], length: int
) -> torch.Tensor:
    """Return which keys of the chosen blocks come no later: bool [blocks, 1, length]."""
    firsts = torch.tensor([column * length for row in rows for column in row])
    own = [p for p, row in zip(positions, rows, strict=True) for _ in row]
    keys = firsts[:, None] + torch.arange(length)
    return (keys <= torch.tensor(own)[:, None])[:, None]


def _causal_blocks(axes: dict[str, int], case: Case, stream: Stream) -> dict[str, Any]:
    positions, length = list(case.params["positions"]), axes["block_columns"]
    rows = causal_rows(positions, length, stream.child("rows"))
    mask = causal_mask(rows, positions, length)
    return {
        **chosen_blocks(rows),
        "mask": mask.expand(-1, axes["block_rows"], -1).clone(),
    }


def causal_blocks(positions: tuple[int, ...], length: int) -> int:
    """Return how many blocks queries at these positions choose."""
    return sum(min(position // length + 1, CHOSEN) for position in positions)


def _variable_blocks(axes: dict[str, int], stream: Stream) -> dict[str, Any]:
    heads, rows = axes["num_kv_heads"], axes["num_block_rows"]
    columns = axes["num_block_columns"]
    mask = torch.zeros(heads, rows, columns, dtype=torch.bool)
    for head in range(heads):
        for row in range(rows):
            draw = stream.child(f"{head} {row}")
            count = draw.integers(1, columns + 1, 1)[0]
            mask[head, row, draw.permutation(columns)[:count]] = True
    return {
        "block_mask": mask,
        "block_row_sz": _sizes(heads, rows, axes["q_len"], stream.child("rows")),
        "block_col_sz": _sizes(heads, columns, axes["kv_len"], stream.child("columns")),
    }


def _sizes(heads: int, parts: int, total: int, stream: Stream) -> torch.Tensor:
    """Return sizes of one or more that add up to `total`: int32 [heads, parts]."""
    cuts = [
        sorted((stream.child(str(h)).permutation(total - 1)[: parts - 1] + 1).tolist())
        for h in range(heads)
    ]
    ends = torch.tensor([[0, *own, total] for own in cuts])
    return ends.diff(dim=1).to(torch.int32)
