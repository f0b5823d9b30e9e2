"""Attention over blocks of keys: of one size, under a mask, and of sizes that vary."""

from __future__ import annotations

import math
from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor, no_traffic
from generator.ops.op_types.block_sparse.workloads import (
    blocks_fit,
    causal_blocks,
    sizes,
    sizes_fit,
    some_blocks,
)
from generator.ops.reference_text import reference_text
from generator.ops.workloads.traffic import videos

LLAMA = "gqa_ragged_prefill_causal_h32_kv8_d128"


@dataclass(frozen=True)
class Blocks:
    """The constants of one definition; block_rows 0 are sizes that vary."""

    block_rows: int
    block_columns: int
    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    models: tuple[str, ...]
    mask: bool = False
    tp: int = 1


# Video models attend over cubes of 4 x 4 x 4 tokens, each a block of 64.
BLOCKS = (
    Blocks(64, 64, 12, 12, 128, ("wan2.1-t2v-1.3b",)),
    Blocks(64, 64, 40, 40, 128, ("wan2.1-t2v-14b",)),
    # of no model: MiniMax M3 chooses blocks for each index head, by kernels of its own
    Blocks(1, 128, 64, 4, 128, (), mask=True),
    Blocks(1, 128, 16, 1, 128, (), mask=True, tp=4),
    Blocks(0, 0, 12, 12, 128, ("wan2.1-t2v-1.3b",)),
    Blocks(0, 0, 40, 40, 128, ("wan2.1-t2v-14b",)),
)
_SEEN = (
    "The queries of block row i see the keys of the block columns"
    " indices[indptr[i]:indptr[i + 1]], in any order and none twice"
)
_NO_BLOCK = "A row without a block gives output 0 and lse -inf."


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        block_spec(blocks) if blocks.block_rows else variable_spec(blocks)
        for blocks in BLOCKS
    )


def block_spec(blocks: Blocks) -> Spec:
    """Return the definition for blocks of one size."""
    rows, columns = blocks.block_rows, blocks.block_columns
    query = ("num_block_rows", "block_rows", "num_qo_heads", "head_dim")
    key = ("num_block_columns", "block_columns", "num_kv_heads", "head_dim")
    word = "mask_" if blocks.mask else ""
    masked = (
        ", each as far as its block of mask is true; every query sees a key"
        if blocks.mask
        else ""
    )
    mask = Tensor(
        ("num_blocks", "block_rows", "block_columns"),
        "bool",
        "Which keys of each chosen block each query of its row sees.",
    )
    return Spec(
        name=f"block_sparse_run_{word}r{rows}_c{columns}_{_heads(blocks)}",
        description=(
            f"Grouped-query attention over blocks: {blocks.num_qo_heads} query heads"
            f" share {blocks.num_kv_heads} KV heads. Queries come in rows of {rows},"
            f" keys in columns of {columns}. {_SEEN}{masked}. {_NO_BLOCK}"
            " There is no causal mask. lse is base 2."
        ),
        op_type="block_sparse",
        tags=_tags(blocks, "BlockSparseAttentionWrapper"),
        axes={
            "block_rows": Axis("Queries of a block.", rows),
            "block_columns": Axis("Keys of a block.", columns),
            **_head_axes(blocks),
            "num_block_rows": Axis("Blocks of queries."),
            "num_block_columns": Axis("Blocks of keys."),
            "len_indptr": Axis("Length of indptr: one more than blocks of queries."),
            "num_blocks": Axis("Pairs of a block of queries and one of keys."),
        },
        inputs={
            "q": Tensor(query, "bfloat16", "Queries, in blocks."),
            "k": Tensor(key, "bfloat16", "Keys, in blocks."),
            "v": Tensor(key, "bfloat16", "Values, in blocks."),
            "indptr": Tensor(
                ("len_indptr",), "int32", "Row i's part of indices: [i]:[i + 1]."
            ),
            "indices": Tensor(("num_blocks",), "int32", "Numbers of blocks of keys."),
            **({"mask": mask} if blocks.mask else {}),
            "sm_scale": _SCALE,
        },
        outputs={
            "output": Tensor(query, "bfloat16", "Attention output."),
            "lse": Tensor(query[:3], "float32", _LSE),
        },
        constraints=(
            "len_indptr == num_block_rows + 1",
            "num_blocks == indptr[-1].item()",
        ),
        reference=reference_text(
            "block_sparse", "block_sparse_mask" if blocks.mask else "block_sparse"
        ),
        captured_from=LLAMA,
        captured_op_type="gqa_ragged",
        structure=causal_blocks if blocks.mask else some_blocks,
        fits=blocks_fit,
        traffic=no_traffic if blocks.mask else videos,
        sm_scale=1 / math.sqrt(blocks.head_dim),
    )


def variable_spec(blocks: Blocks) -> Spec:
    """Return the definition for blocks whose sizes vary by KV head."""
    query = ("num_qo_heads", "q_len", "head_dim")
    key = ("num_kv_heads", "kv_len", "head_dim")
    return Spec(
        name=f"variable_block_sparse_run_{_heads(blocks)}",
        description=(
            f"Grouped-query attention over blocks: {blocks.num_qo_heads} query heads"
            f" share {blocks.num_kv_heads} KV heads, which have blocks of their own."
            " KV head h cuts its queries into rows of block_row_sz[h] and its keys into"
            " columns of block_col_sz[h]; row i sees column j where block_mask[h, i, j]."
            " Every row sees a column. There is no causal mask. lse is base 2."
        ),
        op_type="block_sparse",
        tags=_tags(blocks, "VariableBlockSparseAttentionWrapper"),
        axes={
            **_head_axes(blocks),
            "q_len": Axis("Number of queries."),
            "kv_len": Axis("Number of keys."),
            "num_block_rows": Axis("Blocks of queries."),
            "num_block_columns": Axis("Blocks of keys."),
        },
        inputs={
            "q": Tensor(query, "bfloat16", "Queries, head after head."),
            "k": Tensor(key, "bfloat16", "Keys, head after head."),
            "v": Tensor(key, "bfloat16", "Values, head after head."),
            "block_mask": Tensor(
                ("num_kv_heads", "num_block_rows", "num_block_columns"),
                "bool",
                "Which blocks of keys each block of queries sees.",
            ),
            "block_row_sz": Tensor(
                ("num_kv_heads", "num_block_rows"),
                "int32",
                "Queries of each block; those of a head add up to q_len.",
            ),
            "block_col_sz": Tensor(
                ("num_kv_heads", "num_block_columns"),
                "int32",
                "Keys of each block; those of a head add up to kv_len.",
            ),
            "sm_scale": _SCALE,
        },
        outputs={
            "output": Tensor(query, "bfloat16", "Attention output."),
            "lse": Tensor(query[:2], "float32", _LSE),
        },
        reference=reference_text("block_sparse", "variable_block_sparse"),
        captured_from=LLAMA,
        captured_op_type="gqa_ragged",
        structure=sizes,
        fits=sizes_fit,
        sm_scale=1 / math.sqrt(blocks.head_dim),
    )


_SCALE = Tensor(None, "float32", "Factor of the logits before softmax.")
_LSE = "Base-2 log of the sum of exponentials of the scaled logits."


def _heads(blocks: Blocks) -> str:
    return f"h{blocks.num_qo_heads}_kv{blocks.num_kv_heads}_d{blocks.head_dim}"


def _head_axes(blocks: Blocks) -> dict[str, Axis]:
    return {
        "num_qo_heads": Axis("Query heads.", blocks.num_qo_heads),
        "num_kv_heads": Axis("Key and value heads.", blocks.num_kv_heads),
        "head_dim": Axis("Length of a head.", blocks.head_dim),
    }


def _tags(blocks: Blocks, wrapper: str) -> tuple[str, ...]:
    return (
        "stage:prefill",
        *(f"model:{model}" for model in blocks.models),
        f"fi_api:flashinfer.sparse.{wrapper}",
        "sparse:block",
        f"tp:{blocks.tp}",
    )
