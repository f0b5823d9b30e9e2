"""Structural tensors of attention, made up to fit given axes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from tools.workloads.choose import keys


@dataclass(frozen=True)
class Structure:
    """Hold the axes of a workload, its tensors that are not drawn at random, scalars.

    A tensor of more than one axis is flat: the definition knows its shape.
    """

    axes: Mapping[str, int]
    tensors: Mapping[str, Sequence[float]]
    scalars: Mapping[str, float] = field(default_factory=dict)


def paged_structure(
    captured: Mapping[str, int], page_size: int, rng: random.Random
) -> Structure:
    """Return ragged lengths and shuffled pages for the axes of a captured workload.

    The captured cache has pages of one token, so `num_kv_indices` counts tokens;
    with larger pages the same tokens lie in fewer of them.
    """
    batch_size = captured["len_indptr"] - 1
    q_lens, kv_lens = _lengths(captured, batch_size, rng)
    pages = [-(-kv_len // page_size) for kv_len in kv_lens]
    used = sum(pages)
    num_pages = max(-(-captured["num_pages"] // page_size), used)
    tensors: dict[str, list[int]] = {
        "qo_indptr": _indptr(q_lens),
        "kv_indptr": _indptr(pages),
        "kv_indices": distinct(used, num_pages, rng),
        "kv_last_page_len": [_last_page_len(n, page_size) for n in kv_lens],
    }
    axes = {
        "batch_size": batch_size,
        "total_q": sum(q_lens),
        "num_pages": num_pages,
        "len_indptr": batch_size + 1,
        "num_kv_indices": used,
    }
    return Structure(axes, tensors)


def ragged_structure(captured: Mapping[str, int], rng: random.Random) -> Structure:
    """Return ragged lengths of sequences whose keys lie one after the other.

    Where the axes are those of a cache with pages of one token, `num_kv_indices` is
    the number of keys.
    """
    batch_size = captured["len_indptr"] - 1
    total_kv = keys(captured)
    q_lens, kv_lens = _lengths(
        {"total_q": captured["total_q"], "num_kv_indices": total_kv}, batch_size, rng
    )
    tensors = {"qo_indptr": _indptr(q_lens), "kv_indptr": _indptr(kv_lens)}
    axes = {
        "len_indptr": batch_size + 1,
        "total_q": captured["total_q"],
        "total_kv": total_kv,
    }
    return Structure(axes, tensors)


def split(total: int, parts: int, least: int, rng: random.Random) -> list[int]:
    """Split a total at random points into ragged parts of at least `least`."""
    free = total - parts * least
    if free < 0:
        raise ValueError(f"{total} is too small for {parts} parts of {least}")
    cuts = sorted(rng.randrange(free + 1) for _ in range(parts - 1))
    ends = zip([0, *cuts], [*cuts, free], strict=True)
    return [least + end - start for start, end in ends]


def distinct(count: int, limit: int, rng: random.Random) -> list[int]:
    """Draw distinct numbers below a limit, in random order.

    The first steps of a Fisher-Yates shuffle that remembers only what has moved.
    """
    moved: dict[int, int] = {}
    drawn = []
    for i in range(count):
        j = rng.randrange(i, limit)
        drawn.append(moved.get(j, j))
        moved[j] = moved.get(i, i)
    return drawn


def _lengths(
    captured: Mapping[str, int], batch_size: int, rng: random.Random
) -> tuple[list[int], list[int]]:
    tokens = captured["num_kv_indices"]
    if "total_q" not in captured:
        return [1] * batch_size, split(tokens, batch_size, 1, rng)
    total_q = captured["total_q"]
    q_lens = split(total_q, batch_size, 1, rng)
    if tokens < total_q:
        # The cache holds prefixes only: some sequences have none.
        return q_lens, split(tokens, batch_size, 0, rng)
    # The cache holds prefix and queries, so no sequence has more queries than keys.
    prefixes = split(tokens - total_q, batch_size, 0, rng)
    return q_lens, [q + p for q, p in zip(q_lens, prefixes, strict=True)]


def _indptr(lengths: Sequence[int]) -> list[int]:
    return [0, *accumulate(lengths)]


def _last_page_len(kv_len: int, page_size: int) -> int:
    # Ignored where there are no pages, and still within its range.
    return (kv_len - 1) % page_size + 1 if kv_len else 1
