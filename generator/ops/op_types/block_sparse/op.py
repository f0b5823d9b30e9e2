"""block_sparse: attention over chosen blocks of keys, without a causal mask.

Block row i of the queries sees the block columns indices[indptr[i]:indptr[i + 1]] of the
keys; a `mask` says which keys of each block. With `block_mask`, blocks have sizes of
their own, and every KV head its own blocks. LSE is base 2.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.attention.cases import logit_params, with_far_factors
from generator.ops.attention.flashinfer import FA2, FA3, skip_unmasked, workspace
from generator.ops.attention.tolerances import attention_tolerances
from generator.ops.op_types.block_sparse.dense import (
    dense_attention,
    is_variable,
    visible,
)
from generator.ops.op_types.block_sparse.inputs import causal_blocks, sparse_inputs
from generator.ops.op_types.block_sparse.relations import sparse_relations
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES = attention_tolerances(products=128, total=800)
# block columns, and how many of them each block row sees
_BLOCKS = {
    "one-block": ("small", 1, (1,)),
    "some-blocks": ("small", 4, (1, 3, 2)),
    "all-blocks": ("small", 3, (3, 3)),
    "empty-rows": ("small", 3, (0, 2, 0, 1)),
    "extreme-logits": ("small", 3, (2, 1)),
    "other-scale": ("small", 3, (1, 2)),
    "batch": ("medium", 9, (4, 1, 9, 0, 2)),
    "many-rows": (LIMITS, 9, (8,) * 1_034),
    "many-columns": (LIMITS, 1_034, (1_034, 5)),
    "long": ("large", 64, tuple(range(1, 33))),
}
# block columns, and the positions of the queries
_POSITIONS = {
    "first-token": ("small", 1, (0,)),
    "around-a-block": ("small", 3, (127, 128, 129, 255, 256, 300)),
    "extreme-logits": ("small", 2, (70, 200)),
    "other-scale": ("small", 2, (33, 255)),
    "more-blocks-than-chosen": ("medium", 20, (5, 2047, 2048, 2300, 2559)),
    "past-limits": (LIMITS, 131, tuple(range(100, 16_768, 127))),
    "long": ("large", 256, tuple(range(7, 32768, 331))),
}
# block rows and columns, queries and keys
_SIZES = {
    "one-block": ("small", 1, 1, 5, 7),
    "some-blocks": ("small", 3, 4, 33, 65),
    "many-small-blocks": ("small", 9, 17, 20, 40),
    "extreme-logits": ("small", 2, 3, 9, 70),
    "other-scale": ("small", 2, 2, 20, 33),
    "batch": ("medium", 5, 9, 200, 300),
    "long-block": (LIMITS, 1, 2, 8_300, 40),
    "many-keys": (LIMITS, 2, 1, 20, 8_300),
    "long": ("large", 32, 64, 1024, 4096),
}


def cases(definition: Definition) -> list[Case]:
    """Return few and many blocks, rows without a block, all blocks, far scales."""
    return with_far_factors(definition, _cases(definition))


def _cases(definition: Definition) -> list[Case]:
    if is_variable(definition):
        names = ("num_block_rows", "num_block_columns", "q_len", "kv_len")
        return [
            Case(name, size, dict(zip(names, lengths, strict=True)), logit_params(name))
            for name, (size, *lengths) in _SIZES.items()
        ]
    if "mask" in definition.interface.inputs:
        length = definition.axes["block_columns"]
        return [
            _case(name, size, len(p), columns, causal_blocks(p, length), positions=p)
            for name, (size, columns, p) in _POSITIONS.items()
        ]
    return [
        _case(name, size, len(counts), columns, sum(counts), counts=counts)
        for name, (size, columns, counts) in _BLOCKS.items()
    ]


def _case(
    name: str, size: str, rows: int, columns: int, blocks: int, **params: Any
) -> Case:
    axes = {
        "num_block_rows": rows,
        "num_block_columns": columns,
        "len_indptr": rows + 1,
        "num_blocks": blocks,
    }
    return Case(name, size, axes, {**params, **logit_params(name)})


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `sparse_inputs` for their shapes."""
    return sparse_inputs(definition, case, stream)


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output and LSE in float64: dense attention under the blocks' mask."""
    return dense_attention(definition, inputs, visible(definition, inputs))


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the block rows that see a block; where sizes vary all heads, all rows do."""
    if is_variable(definition):
        return torch.ones(len(inputs["q"]), dtype=torch.bool)
    rows: torch.Tensor = inputs["indptr"].diff() > 0
    return rows


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3, which takes no mask; sizes that vary need einops."""
    if is_variable(definition):
        return tuple(
            Backend(b.name, b.min_sm, b.max_sm, needs=("einops",)) for b in (FA2, FA3)
        )
    return (FA2,) if "mask" in definition.interface.inputs else (FA2, FA3)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's block-sparse wrappers."""
    from flashinfer import sparse

    skip_unmasked(definition, inputs, backend)
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    sizes = [
        definition.axes[axis] for axis in ("num_qo_heads", "num_kv_heads", "head_dim")
    ]
    options = {
        "sm_scale": inputs["sm_scale"],
        "q_data_type": q.dtype,
        "kv_data_type": k.dtype,
    }
    if is_variable(definition):
        variable = sparse.VariableBlockSparseAttentionWrapper(
            workspace(q.device), backend
        )
        blocks = [inputs[n] for n in ("block_mask", "block_row_sz", "block_col_sz")]
        variable.plan(*blocks, *sizes, **options)
        return variable.run(q, k, v, return_lse=True)
    wrapper = sparse.BlockSparseAttentionWrapper(workspace(q.device), backend)
    wrapper.plan(
        inputs["indptr"],
        inputs["indices"],
        q.shape[0] * q.shape[1],
        k.shape[0] * k.shape[1],
        q.shape[1],
        k.shape[1],
        *sizes,
        mask=inputs.get("mask"),
        o_data_type=q.dtype,
        **options,
    )
    flat = (value.flatten(0, 1) for value in (q, k, v))
    output, lse = wrapper.run(*flat, return_lse=True)
    return output.view(q.shape), lse.view(q.shape[:3])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=sparse_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)
