"""The constants of the gqa_paged definitions."""

from __future__ import annotations

from dataclasses import dataclass, replace

DECODE_API = "fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper"
PREFILL_API = "fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper"
PREFILL_API_SHORT = "fi_api:flashinfer.BatchPrefillWithPagedKVCacheWrapper"

# The published interfaces list their axes in these orders; they are kept as they are.
HEADS = ("num_qo_heads", "num_kv_heads", "head_dim")
DECODE_ENDS = ("len_indptr", "num_kv_indices")
DECODE_AXES = ("batch_size", *HEADS, "num_pages", "page_size", *DECODE_ENDS)
DECODE_AXES_PAGE_FIRST = ("batch_size", *HEADS, "page_size", "num_pages", *DECODE_ENDS)
PREFILL_ENDS = ("len_indptr", "total_q", "num_kv_indices", "num_pages")
PREFILL_AXES = (*HEADS, "page_size", *PREFILL_ENDS)
PREFILL_AXES_BATCH_FIRST = ("batch_size", *PREFILL_AXES)
PREFILL_AXES_BATCH_MIDDLE = (*HEADS, "page_size", "batch_size", *PREFILL_ENDS)
PREFILL_AXES_BATCH_LAST = (*PREFILL_AXES, "batch_size")


@dataclass(frozen=True)
class PagedHeads:
    """The constants of one definition; `tags` follow its stage tag.

    `flag` says that it takes return_lse, as calls of FlashInfer's wrapper pass it.
    """

    num_qo_heads: int
    num_kv_heads: int
    page_size: int
    axes: tuple[str, ...]
    tags: tuple[str, ...]
    head_dim: int = 128
    flag: bool = False


def _decode(
    qo: int, kv: int, ps: int, models: str, tp: int, axes: tuple[str, ...] = DECODE_AXES
) -> PagedHeads:
    tags = (*_model_tags(models), DECODE_API, f"tp:{tp}")
    return PagedHeads(qo, kv, ps, axes, tags)


def _prefill(
    qo: int,
    kv: int,
    ps: int,
    models: str,
    tp: int,
    axes: tuple[str, ...] = PREFILL_AXES,
    api: str = PREFILL_API,
) -> PagedHeads:
    return PagedHeads(qo, kv, ps, axes, (*_model_tags(models), api, f"tp:{tp}"))


def _model_tags(models: str) -> tuple[str, ...]:
    return tuple(f"model:{model}" for model in models.split())


MIXTRAL_PREFILL_TAGS = (PREFILL_API, "model:mixtral-8x22b", "tp:2")

DECODE = (
    _decode(16, 2, 1, "llama-3.1-70b qwen3-32b", 4),
    _decode(16, 2, 64, "llama-3.1-70b qwen3-32b", 4, DECODE_AXES_PAGE_FIRST),
    _decode(20, 4, 1, "qwen3-14b", 2),
    _decode(20, 4, 64, "qwen3-14b", 2, DECODE_AXES_PAGE_FIRST),
    _decode(24, 4, 64, "mixtral-8x22b", 2, DECODE_AXES_PAGE_FIRST),
    _decode(24, 8, 1, "llama-3.2-3b", 1),
    _decode(24, 8, 64, "llama-3.2-3b", 1, DECODE_AXES_PAGE_FIRST),
    _decode(32, 16, 1, "gemma-3-27b", 1),
    _decode(32, 16, 64, "gemma-3-27b", 1, DECODE_AXES_PAGE_FIRST),
    _decode(32, 4, 1, "qwen3-30b-a3b", 1),
    _decode(32, 4, 64, "qwen3-30b-a3b", 1),
    _decode(32, 8, 1, "llama-3.1-8b", 1),
    _decode(32, 8, 64, "llama-3.1-8b", 1),
    _decode(48, 8, 1, "mixtral-8x22b", 1),
    _decode(5, 1, 1, "llama-4-scout", 8),
    _decode(6, 1, 1, "minimax-m2", 8),
    _decode(6, 1, 64, "minimax-m2", 8),
)

# Of pages of one token alone: calls do not say how long the last page is.
CALLED = tuple(
    replace(heads, flag=True)
    for heads in DECODE
    if heads.page_size == 1
    and (heads.num_qo_heads, heads.num_kv_heads) in ((32, 8), (32, 4), (16, 2), (20, 4))
)

PREFILL = (
    _prefill(16, 1, 64, "qwen3-235b", 4, PREFILL_AXES_BATCH_FIRST),
    _prefill(16, 2, 1, "llama-3.1-70b qwen3-32b", 4),
    _prefill(16, 2, 64, "llama-3.1-70b qwen3-32b", 4, PREFILL_AXES_BATCH_FIRST),
    _prefill(20, 4, 1, "qwen3-14b", 2),
    _prefill(20, 4, 64, "qwen3-14b", 2, PREFILL_AXES_BATCH_FIRST),
    PagedHeads(24, 4, 1, PREFILL_AXES, MIXTRAL_PREFILL_TAGS),
    PagedHeads(24, 4, 64, PREFILL_AXES_BATCH_FIRST, MIXTRAL_PREFILL_TAGS),
    _prefill(24, 8, 1, "llama-3.2-3b", 1),
    _prefill(24, 8, 64, "llama-3.2-3b", 1, PREFILL_AXES_BATCH_FIRST),
    _prefill(32, 16, 1, "gemma-3-27b", 1),
    _prefill(32, 16, 64, "gemma-3-27b", 1, PREFILL_AXES_BATCH_FIRST),
    _prefill(32, 4, 1, "qwen3-30b-a3b", 1, api=PREFILL_API_SHORT),
    _prefill(32, 4, 64, "qwen3-30b-a3b", 1, PREFILL_AXES_BATCH_LAST),
    _prefill(32, 8, 1, "llama-3.1-8b", 1),
    _prefill(32, 8, 64, "llama-3.1-8b", 1, PREFILL_AXES_BATCH_LAST),
    _prefill(40, 10, 1, "phi-4-14b", 1),
    _prefill(5, 1, 1, "llama-4-scout", 8),
    _prefill(5, 1, 64, "llama-4-scout", 8, PREFILL_AXES_BATCH_MIDDLE),
    _prefill(6, 1, 1, "minimax-m2", 8),
    _prefill(6, 1, 64, "minimax-m2", 8, PREFILL_AXES_BATCH_LAST),
)
