"""Relations of attention over blocks: order does not matter, and all are dense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from generator.ops.attention.oracle import oracle_attention
from generator.ops.attention.related import ALIKE, MERGED, head_axes
from generator.ops.attention.variant import Variant
from generator.ops.head_relations import head_shards
from generator.ops.op_types.block_sparse.dense import is_variable
from generator.ops.op_types.block_sparse.inputs import causal_blocks
from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Inputs
from kernel_judge.relation import (
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)


def sparse_relations(definition: Definition) -> list[Relation]:
    """Return the relations of blocks of one size, or of sizes that vary."""
    cases = [_case(definition)]
    if is_variable(definition):
        return [
            Relation("all-blocks-are-dense", _all_variable, cases),
            Relation("columns-reversed", _columns_reversed, cases),
            head_shards(head_axes(definition), ALIKE, cases),
        ]
    return [
        Relation("all-blocks-are-dense", _all_blocks, cases),
        Relation("blocks-of-a-row-reversed", _reordered, cases),
        Relation("block-columns-renamed", _renamed, cases),
        Relation("block-rows-alone", _rows_alone, cases),
        head_shards(head_axes(definition), ALIKE, cases),
    ]


def _case(definition: Definition) -> RelatedCase:
    axes = {"num_block_rows": 3, "num_block_columns": 4}
    params: dict[str, Any] = {"q_std": 2.0}
    if is_variable(definition):
        axes |= {"q_len": 33, "kv_len": 65}
    elif "mask" in definition.interface.inputs:
        length = definition.axes["block_columns"]
        params["positions"] = (5, 2 * length + 3, 4 * length - 2)
        axes["num_blocks"] = causal_blocks(params["positions"], length)
    else:
        params["counts"] = (2, 1, 3)
        axes["num_blocks"] = sum(params["counts"])
    if "num_blocks" in axes:
        axes["len_indptr"] = axes["num_block_rows"] + 1
    return RelatedCase("three-rows", "small", axes, params)


def _rows(inputs: Inputs) -> list[slice]:
    """Return each row's part of indices."""
    starts = inputs["indptr"].tolist()
    return [slice(starts[i], starts[i + 1]) for i in range(len(starts) - 1)]


def _all_blocks(subject: RelatedCalls) -> Iterator[Claim]:
    """Let every row see all blocks; a mask then hides what comes after the query.

    With a mask, the queries are the last of as many tokens as there are keys.
    """
    inputs = subject.inputs
    rows, columns = len(inputs["q"]), len(inputs["k"])
    all_blocks = {
        **inputs,
        "indptr": torch.arange(rows + 1, dtype=torch.int32) * columns,
        "indices": torch.arange(columns, dtype=torch.int32).repeat(rows),
    }
    if "mask" in inputs:
        keys = inputs["k"].shape[0] * inputs["k"].shape[1]
        queries = rows * inputs["q"].shape[1]
        seen = torch.arange(keys) <= torch.arange(keys - queries, keys)[:, None]
        blocks = seen.view(rows, -1, columns, inputs["k"].shape[1]).transpose(1, 2)
        all_blocks["mask"] = blocks.flatten(0, 1).contiguous()
    q, k, v = (inputs[name].flatten(0, 1) for name in ("q", "k", "v"))
    variant = Variant(causal="mask" in inputs)
    output, lse = oracle_attention(q, k, v, inputs["sm_scale"], variant)
    shape = inputs["q"].shape
    expected = {"output": output.view(shape), "lse": lse.view(shape[:3])}
    yield from alike(expected, subject.run(all_blocks), MERGED)


def _reordered(subject: RelatedCalls) -> Iterator[Claim]:
    """List the blocks of each row the other way round."""
    inputs = subject.inputs
    order = torch.cat(
        [torch.arange(part.stop - 1, part.start - 1, -1) for part in _rows(inputs)]
    )
    names = [name for name in ("indices", "mask") if name in inputs]
    reordered: Inputs = {name: inputs[name][order] for name in names}
    yield from alike(subject.whole, subject.run({**inputs, **reordered}), ALIKE)


def _renamed(subject: RelatedCalls) -> Iterator[Claim]:
    """Move the blocks of keys to other numbers."""
    inputs = subject.inputs
    stream = Stream(subject.trial.case.name, "columns")
    order = stream.permutation(len(inputs["k"]))
    reordered = {name: inputs[name][order] for name in ("k", "v")}
    reordered["indices"] = order.argsort()[inputs["indices"].long()].to(torch.int32)
    yield from alike(subject.whole, subject.run({**inputs, **reordered}), ALIKE)


def _rows_alone(subject: RelatedCalls) -> Iterator[Claim]:
    """Call run() on each block row alone."""
    inputs = subject.inputs
    for row, part in enumerate(_rows(inputs)):
        names = [name for name in ("indices", "mask") if name in inputs]
        one_row: Inputs = {name: inputs[name][part] for name in names}
        one_row["q"] = inputs["q"][row : row + 1]
        one_row["indptr"] = torch.tensor([0, part.stop - part.start], dtype=torch.int32)
        expected = {n: v[row : row + 1] for n, v in subject.whole.items()}
        yield from alike(expected, subject.run({**inputs, **one_row}), ALIKE)


def _all_variable(subject: RelatedCalls) -> Iterator[Claim]:
    """Let every row see all blocks: attention without a mask."""
    inputs = subject.inputs
    seen = torch.ones_like(inputs["block_mask"])
    q, k, v = (inputs[name].transpose(0, 1) for name in ("q", "k", "v"))
    no_mask = Variant(causal=False)
    output, lse = oracle_attention(q, k, v, inputs["sm_scale"], no_mask)
    expected = {"output": output.transpose(0, 1), "lse": lse.T}
    actual = subject.run({**inputs, "block_mask": seen})
    yield from alike(expected, actual, MERGED)


def _columns_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Reverse the keys of each head, with their blocks."""
    inputs = subject.inputs
    flipped = {name: inputs[name].flip(1) for name in ("k", "v", "block_col_sz")}
    flipped["block_mask"] = inputs["block_mask"].flip(2)
    yield from alike(subject.whole, subject.run({**inputs, **flipped}), ALIKE)
