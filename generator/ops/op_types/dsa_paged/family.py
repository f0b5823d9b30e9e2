"""Sparse latent attention over chosen tokens, and the indexer that chooses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.attention import paged_family as paged
from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.dsa_paged import workloads
from generator.ops.op_types.mla_paged.family import (
    DEEPSEEK_SCALE,
    HEAD_DIM_CKV,
    HEAD_DIM_KPE,
)
from generator.ops.reference_text import reference_text

NUM_QO_HEADS = 16
TOPK = 2048
INDEX_HEADS = 64
INDEX_HEAD_DIM = 128
INDEX_PAGE_SIZE = 64
SCALE_BYTES = 4

MODEL = "deepseek-v3.2"
FI_API = "fi_api:flashinfer.decode.trtllm_batch_decode_with_kv_cache_mla"
SLOT = "page * page_size + offset"


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    # all heads on one GPU, with data-parallel attention
    whole = attention_spec(64, 128, tp=1)
    return (attention_spec(1), attention_spec(64), whole, indexer_spec())


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    if not name.startswith("dsa_sparse_attention_"):
        return None
    return attention_spec(sizes["ps"], sizes["h"], model)


def attention_spec(
    page_size: int,
    num_qo_heads: int = NUM_QO_HEADS,
    model: str = MODEL,
    tp: int = 8,
) -> Spec:
    """Return the definition of sparse attention for one page size."""
    rows = ("num_tokens", "num_qo_heads")
    pool = ("num_pages", "page_size")
    latent, rotary = "head_dim_ckv", "head_dim_kpe"
    return Spec(
        name=f"dsa_sparse_attention_h{num_qo_heads}_ckv{HEAD_DIM_CKV}"
        f"_kpe{HEAD_DIM_KPE}_topk{TOPK}_ps{page_size}",
        description=(
            "Sparse multi-head latent attention, projections absorbed: each query"
            " attends to the tokens that its row of sparse_indices lists, whatever"
            f" their order. An index is {SLOT}; -1 is padding and may stand anywhere; an"
            " index listed twice counts twice. Logits are q_nope . ckv + q_pe . kpe,"
            f" the values are ckv, {num_qo_heads} query heads share one cache. A query"
            " without tokens gives output 0 and lse -inf. lse is base 2."
        ),
        op_type="dsa_paged",
        tags=(
            f"model:{model}",
            "sparse:topk",
            FI_API,
            f"tp:{tp}",
        ),
        axes={
            "num_tokens": Axis("Number of queries."),
            "num_qo_heads": Axis("Query heads.", num_qo_heads),
            "head_dim_ckv": Axis("Length of the compressed KV.", HEAD_DIM_CKV),
            "head_dim_kpe": Axis("Length of the rotary part of a key.", HEAD_DIM_KPE),
            "page_size": Axis("Tokens a page holds.", page_size),
            "topk": Axis("Tokens that a query may attend to.", TOPK),
            "num_pages": paged.VAR_AXES["num_pages"],
        },
        inputs={
            "q_nope": Tensor(
                (*rows, latent),
                "bfloat16",
                "Queries without position, projected to the latent space.",
            ),
            "q_pe": Tensor((*rows, rotary), "bfloat16", "Rotary part of the queries."),
            "ckv_cache": Tensor(
                (*pool, latent),
                "bfloat16",
                "Compressed KV, in pages: the keys and the values.",
            ),
            "kpe_cache": Tensor(
                (*pool, rotary), "bfloat16", "Rotary part of the keys, in pages."
            ),
            "sparse_indices": Tensor(
                ("num_tokens", "topk"),
                "int32",
                f"Each query's tokens as {SLOT}, -1 for padding.",
            ),
            "sm_scale": Tensor(None, "float32", "Factor of the logits before softmax."),
        },
        outputs={
            "output": Tensor(
                (*rows, latent), "bfloat16", "Attention output, in the latent space."
            ),
            "lse": paged.lse_output("num_tokens"),
        },
        constraints=(
            "sparse_indices.shape[0] == num_tokens",
            "sparse_indices.shape[-1] == topk",
            "ckv_cache.shape[1] == page_size",
        ),
        reference=reference_text("dsa_paged", "dsa_sparse_attention"),
        captured_from="gemm_n256_k7168",
        captured_op_type="gemm",
        structure=workloads.chosen,
        fits=workloads.chosen_fits,
        traffic=workloads.long_lists,
        sm_scale=DEEPSEEK_SCALE,
    )


def indexer_spec() -> Spec:
    """Return the definition of the indexer."""
    return Spec(
        name=f"dsa_topk_indexer_fp8_h{INDEX_HEADS}_d{INDEX_HEAD_DIM}_topk{TOPK}"
        f"_ps{INDEX_PAGE_SIZE}",
        description=(
            "Indexer of sparse attention: a token scores the sum over the heads of"
            " weight * relu(q . k), times the scale of its key, and a query keeps the"
            f" {TOPK} best tokens of its sequence, all where there are fewer. An index"
            f" is {SLOT}, as sparse attention takes it; -1 fills the row. The order of"
            " the indices and the choice among equal scores are free. A page of the"
            f" cache is a run of bytes: the fp8 keys of its {INDEX_PAGE_SIZE} tokens,"
            f" {INDEX_HEAD_DIM} bytes each, then their {INDEX_PAGE_SIZE} float32"
            " scales; the last axis counts a token's bytes and locates none."
        ),
        op_type="dsa_paged",
        tags=("stage:indexer", f"model:{MODEL}", "sparse:topk", "quant:fp8"),
        axes={
            "batch_size": Axis("Number of sequences, one query each."),
            "num_index_heads": Axis("Heads of the indexer.", INDEX_HEADS),
            "index_head_dim": Axis("Length of a head of the indexer.", INDEX_HEAD_DIM),
            "page_size": Axis("Tokens a page holds.", INDEX_PAGE_SIZE),
            "topk": Axis("Tokens that a query keeps.", TOPK),
            "max_num_pages": Axis("Pages that a row of the block table has room for."),
            "num_pages": paged.VAR_AXES["num_pages"],
            "kv_cache_num_heads": Axis("Heads of the cache: all share one key.", 1),
            "head_dim_with_scale": Axis(
                "Bytes a token takes: its key and its scale.",
                INDEX_HEAD_DIM + SCALE_BYTES,
            ),
        },
        inputs={
            "q_index_fp8": Tensor(
                ("batch_size", "num_index_heads", "index_head_dim"),
                "float8_e4m3fn",
                "Queries of the indexer; their scale is part of the weights.",
            ),
            "k_index_cache_fp8": Tensor(
                (
                    "num_pages",
                    "page_size",
                    "kv_cache_num_heads",
                    "head_dim_with_scale",
                ),
                "int8",
                "Pages of bytes: the fp8 keys of all tokens, then their float32 scales.",
            ),
            "weights": Tensor(
                ("batch_size", "num_index_heads"),
                "float32",
                "Weight of each head, scale of the query included.",
            ),
            "seq_lens": Tensor(
                ("batch_size",), "int32", "Number of tokens of each sequence."
            ),
            "block_table": Tensor(
                ("batch_size", "max_num_pages"),
                "int32",
                "Each sequence's pages in the order of its tokens; what lies behind"
                " them is ignored.",
            ),
        },
        outputs={
            "topk_indices": Tensor(
                ("batch_size", "topk"),
                "int32",
                f"Each query's best tokens as {SLOT}, then -1.",
            )
        },
        constraints=("topk <= max_num_pages * page_size",),
        reference=reference_text("dsa_paged", "dsa_topk_indexer_fp8", TOPK=TOPK),
        captured_from="mla_paged_decode_h16_ckv512_kpe64_ps1",
        captured_op_type="mla_paged",
        structure=workloads.table,
        fits=workloads.table_fits,
        traffic=workloads.long_tables,
    )
