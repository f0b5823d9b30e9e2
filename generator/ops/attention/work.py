"""The work of attention: pairs of a query and a key, and the keys that are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from generator.ops.work import size_of


def lengths(indptr: torch.Tensor) -> list[int]:
    """Return the lengths of the pieces that an indptr separates."""
    lengths: list[int] = indptr.diff().tolist()
    return lengths


def paged_lengths(inputs: Mapping[str, Any], page: int) -> tuple[list[int], list[int]]:
    """Return the lengths of queries and of keys in pages, for each sequence.

    Without `qo_indptr` each sequence has one query, without `kv_last_page_len` its last
    page is full.
    """
    pages = lengths(inputs["kv_indptr"])
    last = inputs.get("kv_last_page_len")
    ends = [page] * len(pages) if last is None else last.tolist()
    keys = [
        (n - 1) * page + end if n else 0 for n, end in zip(pages, ends, strict=True)
    ]
    is_decode = "qo_indptr" not in inputs
    return [1] * len(keys) if is_decode else lengths(inputs["qo_indptr"]), keys


def pairs(
    queries: Sequence[int], keys: Sequence[int], causal: bool, window: int = -1
) -> int:
    """Return how many pairs of a query and a key count.

    Queries are the last of their sequence. With `causal` each sees the keys up to its
    own, with a `window` of at least 0 only that many before it.
    """
    total = 0
    for count, length in zip(queries, keys, strict=True):
        for query in range(count):
            last = length - count + query + 1 if causal else length
            seen = min(last, window + 1) if window >= 0 else last
            total += max(seen, 0)
    return total


def keys_read(queries: Sequence[int], keys: Sequence[int], window: int = -1) -> int:
    """Return how many keys any query of their sequence sees."""
    if window < 0:
        return sum(k for q, k in zip(queries, keys, strict=True) if q)
    return sum(min(k, window + q) for q, k in zip(queries, keys, strict=True) if q)


def products(count: int, heads: int, score_length: int, value_length: int) -> int:
    """Return the operations of scores and weighted sums of that many pairs."""
    return 2 * count * heads * (score_length + value_length)


def bytes_of_rows(cache: torch.Tensor, rows: int, dimensions: int) -> int:
    """Return the bytes of some rows of a cache, whose last `dimensions` are a row."""
    row = 1
    for length in cache.shape[cache.dim() - dimensions :]:
        row *= length
    return min(rows * row * cache.dtype.itemsize, size_of(cache))
