"""Appending to a paged cache: keys and values in two layouts, and latents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.page_append.workloads import appended, appended_fits
from generator.ops.reference_text import reference_text

# captured prefills, whose queries' keys are appended
LLAMA = "gqa_paged_prefill_causal_h32_kv8_d128_ps1"
QWEN = "gqa_paged_prefill_causal_h32_kv4_d128_ps1"
DEEPSEEK = "mla_paged_prefill_causal_h16_ckv512_kpe64_ps1"


@dataclass(frozen=True)
class Cache:
    """The constants of one definition, and the models that have them."""

    num_kv_heads: int
    head_dim: int
    models: tuple[str, ...]
    captured_from: str = LLAMA
    page_size: int = 64
    layouts: tuple[str, ...] = ("NHD", "HND")
    tp: int = 1


_LLAMA_70B = ("llama-3.1-70b", "llama-3.3-70b")
CACHES = (
    Cache(1, 128, (*_LLAMA_70B, "qwen3-235b-a22b"), QWEN, layouts=("NHD",), tp=8),
    Cache(2, 128, (*_LLAMA_70B, "qwen3-32b"), QWEN, layouts=("NHD",), tp=4),
    Cache(2, 256, ("qwen3-next-80b-a3b",), QWEN),
    Cache(4, 128, ("qwen3-30b-a3b", "qwen3-235b-a22b"), QWEN, layouts=("NHD",)),
    Cache(8, 64, ("gpt-oss-120b", "gpt-oss-20b")),
    Cache(8, 128, ("llama-3.1-8b", "mistral-7b-v0.1", "minimax-m2")),
    Cache(8, 128, ("llama-3.1-8b",), page_size=16, layouts=("NHD",)),
    Cache(16, 128, ("gemma-3-27b", "gemma-2-27b"), layouts=("NHD",)),
    Cache(8, 256, ("gemma-2-9b",), layouts=("NHD",)),
)
MLA_MODELS = ("deepseek-v3", "deepseek-r1", "kimi-k2")
HEAD_DIM_CKV, HEAD_DIM_KPE = 512, 64

_WHERE = (
    "Row i belongs at token positions[i] of sequence batch_indices[i], which is slot"
    " position % page_size of page kv_indices[kv_indptr[b] + position // page_size]."
    " The outputs are the whole caches: slots that no row is for keep what they hold."
    " Rows may come in any order; no two have the same slot. A batch index of -1, which"
    " FlashInfer's get_batch_indices_positions pads with, is not allowed: the kernel"
    " reads in front of kv_indptr for it."
)
_VAR_AXES = {
    "nnz_kv": Axis("Rows to append, of all sequences."),
    "num_pages": Axis("Pages of the cache, used or not."),
    "batch_size": Axis("Number of sequences."),
    "len_indptr": Axis("Length of kv_indptr: one more than sequences."),
    "num_kv_indices": Axis("Pages of all sequences, with those to append to."),
}
_CONSTRAINTS = (
    "len_indptr == batch_size + 1",
    "num_kv_indices == kv_indptr[-1].item()",
    "min(batch_indices.tolist()) >= 0",
    "max(batch_indices.tolist()) < batch_size",
    "min(positions.tolist()) >= 0",
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    gqa = (kv_spec(cache, layout) for cache in CACHES for layout in cache.layouts)
    return (*gqa, latent_spec())


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    if "kv" not in sizes:
        return None
    cache = Cache(sizes["kv"], sizes["d"], (model,), page_size=sizes["ps"])
    return kv_spec(cache, "NHD")


def kv_spec(cache: Cache, layout: str) -> Spec:
    """Return the definition that appends keys and values in one layout."""
    hnd = layout == "HND"
    inside = ("num_kv_heads", "page_size") if hnd else ("page_size", "num_kv_heads")
    shape = ("num_pages", *inside, "head_dim")
    rows = ("nnz_kv", "num_kv_heads", "head_dim")
    of = f"kv{cache.num_kv_heads}_d{cache.head_dim}_ps{cache.page_size}"
    return Spec(
        name=f"append_paged_kv_cache_{'hnd_' if hnd else ''}{of}",
        description=(
            f"Append keys and values to a paged cache of layout {layout}. {_WHERE}"
        ),
        op_type="page_append",
        tags=(
            *(f"model:{model}" for model in cache.models),
            "fi_api:flashinfer.page.append_paged_kv_cache",
            f"tp:{cache.tp}",
        ),
        axes=_VAR_AXES
        | {
            "num_kv_heads": Axis("Key and value heads.", cache.num_kv_heads),
            "head_dim": Axis("Length of a head.", cache.head_dim),
            "page_size": Axis("Tokens a page holds.", cache.page_size),
        },
        inputs={
            "append_key": Tensor(rows, "bfloat16", "Keys to append."),
            "append_value": Tensor(rows, "bfloat16", "Values to append."),
            **_where(),
            "k_cache": Tensor(shape, "bfloat16", f"Keys, in pages (layout {layout})."),
            "v_cache": Tensor(
                shape, "bfloat16", f"Values, in pages (layout {layout})."
            ),
            **_table(),
        },
        outputs={
            "k_cache_out": Tensor(shape, "bfloat16", "All keys."),
            "v_cache_out": Tensor(shape, "bfloat16", "All values."),
        },
        constraints=_CONSTRAINTS,
        reference=reference_text(
            "page_append", f"append_paged_kv_cache{'_hnd' if hnd else ''}"
        ),
        captured_from=cache.captured_from,
        captured_op_type="gqa_paged",
        structure=appended,
        fits=appended_fits,
    )


def latent_spec() -> Spec:
    """Return the definition that appends latents and rotary keys."""
    shapes = {
        part: ("num_pages", "page_size", f"head_dim_{part}") for part in ("ckv", "kpe")
    }
    return Spec(
        name=f"append_paged_mla_kv_cache_ckv{HEAD_DIM_CKV}_kpe{HEAD_DIM_KPE}",
        description=(
            "Append compressed keys and values, and their rotary part, to the paged"
            f" cache of latent attention. {_WHERE}"
        ),
        op_type="page_append",
        tags=(
            *(f"model:{model}" for model in MLA_MODELS),
            "fi_api:flashinfer.page.append_paged_mla_kv_cache",
            "tp:1",
        ),
        axes=_VAR_AXES
        | {
            "page_size": Axis("Tokens a page holds."),
            "head_dim_ckv": Axis("Length of a latent.", HEAD_DIM_CKV),
            "head_dim_kpe": Axis("Length of its rotary part.", HEAD_DIM_KPE),
        },
        inputs={
            "append_ckv": Tensor(
                ("nnz_kv", "head_dim_ckv"), "bfloat16", "Latents to append."
            ),
            "append_kpe": Tensor(
                ("nnz_kv", "head_dim_kpe"), "bfloat16", "Rotary parts to append."
            ),
            **_where(),
            "ckv_cache": Tensor(shapes["ckv"], "bfloat16", "Latents, in pages."),
            "kpe_cache": Tensor(shapes["kpe"], "bfloat16", "Rotary parts, in pages."),
            **_table(),
        },
        outputs={
            "ckv_cache_out": Tensor(shapes["ckv"], "bfloat16", "All latents."),
            "kpe_cache_out": Tensor(shapes["kpe"], "bfloat16", "All rotary parts."),
        },
        constraints=_CONSTRAINTS,
        reference=reference_text("page_append", "append_paged_mla_kv_cache"),
        captured_from=DEEPSEEK,
        captured_op_type="mla_paged",
        structure=appended,
        fits=appended_fits,
    )


def _where() -> dict[str, Tensor]:
    return {
        "batch_indices": Tensor(("nnz_kv",), "int32", "Each row's sequence."),
        "positions": Tensor(
            ("nnz_kv",), "int32", "Each row's token, counted from its sequence's first."
        ),
    }


def _table() -> dict[str, Tensor]:
    return {
        "kv_indices": Tensor(
            ("num_kv_indices",), "int32", "Page numbers, in the order of the tokens."
        ),
        "kv_indptr": Tensor(
            ("len_indptr",), "int32", "Sequence b's part of kv_indices: [b]:[b + 1]."
        ),
        "kv_last_page_len": Tensor(
            ("batch_size",),
            "int32",
            "Filled slots of each sequence's last page after the append; the positions"
            " alone say where a row belongs.",
        ),
    }
