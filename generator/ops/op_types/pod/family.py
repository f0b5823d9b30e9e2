"""Prefill on decode: one sequence's prefill and a batch of decodes, in one call."""

from __future__ import annotations

import math
from dataclasses import dataclass

from generator.ops.attention import paged_family as paged
from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.pod.workloads import both_fit, prefill_and_decodes
from generator.ops.reference_text import reference_text

LLAMA = "gqa_paged_decode_h32_kv8_d128_ps1"
QWEN = "gqa_paged_decode_h32_kv4_d128_ps1"
PAGE_SIZE = 64


@dataclass(frozen=True)
class PodHeads:
    """The constants of one definition, and the models that have them."""

    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    models: tuple[str, ...]
    captured_from: str


HEADS = (
    PodHeads(32, 8, 128, ("llama-3.1-8b",), LLAMA),
    PodHeads(32, 4, 128, ("qwen3-30b-a3b",), QWEN),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(pod_spec(heads) for heads in HEADS)


def pod_spec(heads: PodHeads) -> Spec:
    """Return the definition for one set of constants."""
    qo, kv, dim = heads.num_qo_heads, heads.num_kv_heads, heads.head_dim
    cache = ("num_pages", "page_size", "num_kv_heads", "head_dim")
    keys = ("kv_len", "num_kv_heads", "head_dim")
    table = paged.structural_inputs(prefill=False, page_size=PAGE_SIZE)
    shapes = {
        part: (rows, "num_qo_heads", "head_dim")
        for part, rows in (("p", "q_len"), ("d", "batch_size"))
    }
    return Spec(
        name=f"pod_causal_h{qo}_kv{kv}_d{dim}_ps{PAGE_SIZE}",
        description=(
            "Attention of one sequence's prefill over contiguous keys and, in the same"
            " call, of a batch of decodes over a paged cache: two calls that share"
            f" nothing but sm_scale. {qo} query heads share {kv} KV heads. The"
            " prefill's mask is causal and aligned bottom-right: query i of q_len sees"
            f" keys 0 ... kv_len - q_len + i. {paged.KV_LEN} A query that sees no key"
            " gives output 0."
        ),
        op_type="pod",
        tags=(
            "stage:prefill",
            "stage:decode",
            *(f"model:{model}" for model in heads.models),
            "fi_api:flashinfer.pod.PODWithPagedKVCacheWrapper",
            "tp:1",
        ),
        axes={
            "num_qo_heads": Axis("Query heads.", qo),
            "num_kv_heads": Axis("Key and value heads.", kv),
            "head_dim": Axis("Length of a head.", dim),
            "page_size": Axis("Tokens a page holds.", PAGE_SIZE),
            "q_len": Axis("Queries of the prefill."),
            "kv_len": Axis("Keys of the prefill, one or more."),
            "batch_size": Axis("Number of decodes."),
            "num_pages": paged.VAR_AXES["num_pages"],
            "len_indptr": paged.VAR_AXES["len_indptr"],
            "num_kv_indices": paged.VAR_AXES["num_kv_indices"],
        },
        inputs={
            "q_p": Tensor(shapes["p"], "bfloat16", "Queries of the prefill."),
            "k_p": Tensor(keys, "bfloat16", "Keys of the prefill."),
            "v_p": Tensor(keys, "bfloat16", "Values of the prefill."),
            "q_d": Tensor(shapes["d"], "bfloat16", "One query a decode."),
            "k_cache": Tensor(cache, "bfloat16", "Keys, in pages (layout NHD)."),
            "v_cache": Tensor(cache, "bfloat16", "Values, in pages (layout NHD)."),
            **table,
        },
        outputs={
            "output_p": Tensor(shapes["p"], "bfloat16", "Attention of the prefill."),
            "output_d": Tensor(shapes["d"], "bfloat16", "Attention of the decodes."),
        },
        constraints=(paged.LEN_INDPTR, paged.NUM_KV_INDICES, "kv_len >= 1"),
        reference=reference_text("pod", "pod_causal"),
        captured_from=heads.captured_from,
        captured_op_type="gqa_paged",
        structure=prefill_and_decodes,
        fits=both_fit,
        sm_scale=1 / math.sqrt(dim),
    )
