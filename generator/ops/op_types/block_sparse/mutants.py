"""Domain mutants of attention over blocks: other blocks, other sizes, no mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.attention.mutants import gqa_mutants
from generator.ops.mutants import DomainMutant, Inputs, MutantGroup, Outputs, on_outputs
from generator.ops.op_types.block_sparse.dense import (
    block_mask,
    dense_attention,
    is_variable,
    visible,
)
from kernel_judge.definition import Definition

# every row sees a block
_OF_NO_KEY = ("LSE of no key a finite number", "output of no key not a number")
# it takes the heads for the second axis of q
_INTERLEAVED = "query head h reads KV head h % kv for h // ratio"

# (definition, inputs) → bool [kv_heads or 1, queries, keys]
Seen = Callable[[Definition, Inputs], torch.Tensor]


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return those of attention, and of blocks of one size or of sizes that vary."""
    names = definition.interface.inputs
    without: tuple[str, ...] = (_INTERLEAVED,)
    if is_variable(definition) or "mask" in names:
        without += _OF_NO_KEY
    defects = [m for m in gqa_mutants(definition) if m.name not in without]
    seen: dict[str, Seen] = {"pattern ignored": _all}
    seen["next row's blocks"] = _next_row
    if is_variable(definition):
        seen["sizes of blocks alike"] = _even_sizes
        if definition.axes["num_kv_heads"] > 1:
            seen["blocks of the first head for all"] = _first_head
            seen["blocks of the next head"] = _next_head
    else:
        seen["last block of a row ignored"] = _without(-1)
        seen["first block of a row ignored"] = _without(0)
        seen["rows and columns of blocks swapped"] = _transposed
        if definition.axes["block_rows"] != definition.axes["block_columns"]:
            seen["sizes of rows and columns swapped"] = _swapped_sizes
        if "mask" in names:
            seen["mask ignored"] = _without_mask
            seen["mask of the first block for all"] = _first_mask
            seen["mask one key too strict"] = _strict
    defects += [_under(definition, name, mask) for name, mask in seen.items()]
    if 1 < definition.axes["num_kv_heads"] < definition.axes["num_qo_heads"]:
        defects.append(_interleaved(definition))
    return tuple(defects)


def _under(definition: Definition, name: str, seen: Seen) -> DomainMutant:
    """Return the mutant that attends under another mask, rounded as the outputs are."""

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        attended = dense_attention(definition, inputs, seen(definition, inputs))
        return tuple(
            wrong.to(right.dtype)
            for wrong, right in zip(attended, outputs, strict=True)
        )

    return on_outputs(definition, name, spoil)


def _all(definition: Definition, inputs: Inputs) -> torch.Tensor:
    return torch.ones_like(visible(definition, inputs))


def _next_row(definition: Definition, inputs: Inputs) -> torch.Tensor:
    if is_variable(definition):
        rolled = {**inputs, "block_mask": inputs["block_mask"].roll(-1, 1)}
        return visible(definition, rolled)
    return visible(definition, inputs).roll(-inputs["q"].shape[1], 1)


def _expanded(blocks: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    return blocks.repeat_interleave(rows, 0).repeat_interleave(columns, 1)


def _fitted(seen: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    """Cut or pad a mask [rows, columns] to all queries and keys."""
    queries, keys = (inputs[n].shape[0] * inputs[n].shape[1] for n in ("q", "k"))
    mask = torch.zeros(1, queries, keys, dtype=torch.bool)
    part = seen[:queries, :keys]
    mask[0, : part.shape[0], : part.shape[1]] = part
    return mask


def _transposed(definition: Definition, inputs: Inputs) -> torch.Tensor:
    sizes = inputs["q"].shape[1], inputs["k"].shape[1]
    return _fitted(_expanded(block_mask(inputs).T, *sizes), inputs)


def _swapped_sizes(definition: Definition, inputs: Inputs) -> torch.Tensor:
    sizes = inputs["k"].shape[1], inputs["q"].shape[1]
    return _fitted(_expanded(block_mask(inputs), *sizes), inputs)


def _without(place: int) -> Seen:
    """Return the mask without one block of each row that has several."""

    def seen(definition: Definition, inputs: Inputs) -> torch.Tensor:
        mask = visible(definition, inputs).clone()
        starts, columns = inputs["indptr"].tolist(), inputs["k"].shape[1]
        rows = inputs["q"].shape[1]
        for row in range(len(starts) - 1):
            if starts[row + 1] - starts[row] > 1:
                at = starts[row] if place == 0 else starts[row + 1] - 1
                first = int(inputs["indices"][at]) * columns
                queries = slice(row * rows, (row + 1) * rows)
                mask[:, queries, first : first + columns] = False
        return mask

    return seen


def _without_mask(definition: Definition, inputs: Inputs) -> torch.Tensor:
    unmasked = {name: value for name, value in inputs.items() if name != "mask"}
    return visible(definition, unmasked)


def _first_mask(definition: Definition, inputs: Inputs) -> torch.Tensor:
    mask = inputs["mask"]
    return visible(definition, {**inputs, "mask": mask[:1].expand_as(mask)})


def _strict(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Hide the last key that each query sees, where it sees several."""
    mask = visible(definition, inputs).clone()
    for query in range(mask.shape[1]):
        keys = mask[0, query].nonzero()[:, 0]
        if len(keys) > 1:
            mask[0, query, keys[-1]] = False
    return mask


def _even_sizes(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Cut queries and keys into blocks of one size, the rest into the last."""
    resized: dict[str, Any] = dict(inputs)
    for name, of in (("block_row_sz", "q"), ("block_col_sz", "k")):
        parts, total = inputs[name].shape[1], inputs[of].shape[1]
        even = torch.full_like(inputs[name], total // parts)
        even[:, -1] += total % parts
        resized[name] = even
    return visible(definition, resized)


def _first_head(definition: Definition, inputs: Inputs) -> torch.Tensor:
    mask = visible(definition, inputs)
    return mask[:1].expand_as(mask)


def _next_head(definition: Definition, inputs: Inputs) -> torch.Tensor:
    return visible(definition, inputs).roll(-1, 0)


def _interleaved(definition: Definition) -> DomainMutant:
    """Return the mutant whose query head h reads KV head h % kv_heads."""
    heads, kv_heads = (definition.axes[n] for n in ("num_qo_heads", "num_kv_heads"))
    order = torch.arange(heads).reshape(-1, kv_heads).T.flatten()
    back = order.argsort()
    axis = 0 if is_variable(definition) else 2

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        reordered = {**inputs, "q": inputs["q"].index_select(axis, order)}
        attended = dense_attention(definition, reordered, visible(definition, inputs))
        return tuple(
            wrong.index_select(axis, back).to(right.dtype)
            for wrong, right in zip(attended, outputs, strict=True)
        )

    return on_outputs(definition, _INTERLEAVED, spoil)


MUTANTS = (MutantGroup(mutants, "q k v sm_scale output lse num_qo_heads num_kv_heads"),)
