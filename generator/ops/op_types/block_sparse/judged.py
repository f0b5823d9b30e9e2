"""Cases that only solutions are asked: far factors, and more blocks than 8 bits number.

A video of Wan 2.1 has 512 blocks of 64 tokens. Of a case with as many, keys and values are
those of 61 blocks in turn, which are soon drawn: no two whose numbers are a power of two
apart are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from generator.ops.attention.judged import far_of_attention
from generator.ops.op_types.block_sparse.dense import is_variable
from generator.ops.op_types.block_sparse.inputs import (
    causal_blocks,
    chosen_blocks,
    sparse_inputs,
)
from generator.ops.own_inputs import OwnInputs
from kernel_judge.definition import LIMITS, Case, Definition
from kernel_judge.inputs.repeated import DISTINCT
from kernel_judge.inputs.seeded_inputs import Stream

# blocks of keys; a row of a few of them, the last one among these
_COLUMNS, _FEW = 258, 5
# blocks of queries and of keys, where their sizes vary, and queries and keys
_VARIABLE = {
    "many-blocks": (259, 300, 400, 500),
    "large-blocks": (2, 2, 700, 600),
}


def far_cases(definition: Definition, declared: Sequence[Case]) -> list[Case]:
    """Return the cases of far factors that kernels can be asked, and of many blocks."""
    return [*far_of_attention(definition, declared), *_past_eight_bits(definition)]


def _past_eight_bits(definition: Definition) -> list[Case]:
    if is_variable(definition):
        names = ("num_block_rows", "num_block_columns", "q_len", "kv_len")
        return [
            Case(name, LIMITS, dict(zip(names, sizes, strict=True)), {"q_std": 2.0})
            for name, sizes in _VARIABLE.items()
        ]
    params: dict[str, Any] = {"q_std": 2.0}
    if "mask" in definition.interface.inputs:
        length = definition.axes["block_columns"]
        end = _COLUMNS * length
        params["positions"] = (end - 1, end - length - 1, 7, end - 5)
        rows, blocks = 4, causal_blocks(params["positions"], length)
    else:
        rows, blocks = 2, _COLUMNS + _FEW
    axes = {
        "num_block_rows": rows,
        "num_block_columns": _COLUMNS,
        "len_indptr": rows + 1,
        "num_blocks": blocks,
    }
    return [OwnInputs("many-blocks", LIMITS, axes, params, make_inputs=_many_blocks)]


def _many_blocks(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs of a row that sees all blocks, and of one that sees five."""
    every = stream.child("rows").permutation(_COLUMNS)
    others = every[every != _COLUMNS - 1][: _FEW - 1].tolist()
    few = [*others[:2], _COLUMNS - 1, *others[2:]]
    drawn = replace(
        case,
        axes={**case.axes, "num_block_columns": DISTINCT},
        params={**case.params, "counts": ()},
    )
    inputs = sparse_inputs(definition, drawn, stream)
    if "mask" not in inputs:
        inputs |= chosen_blocks([every.tolist(), few])
    for name in ("k", "v"):
        inputs[name] = inputs[name][torch.arange(_COLUMNS) % DISTINCT]
    return inputs
