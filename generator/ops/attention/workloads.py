"""Workloads of attention: lengths of sequences and page tables, made up to fit axes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.choose import keys
from generator.ops.workloads.structure import (
    MEMORY_LIMIT,
    Structure,
    distinct,
    fits_a_blob,
    split,
)
from generator.ops.workloads.traffic import Step, decode_steps, prefill_steps

# of caches in 8 bits: factors below 1, as an amax of some hundred gives them
SCALES = {"k_scale": 0.8125, "v_scale": 0.6875}
LATENT_SCALES = {"ckv_scale": 0.6875, "kpe_scale": 0.8125}
# tokens of the tree that a sequence's draft model proposes
DRAFT_TOKENS = 8
# pages of a batch whose numbers fit in a blob, with its indptr arrays
_MOST_PAGES = 14_000


def paged(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the structure of attention over a paged cache."""
    page_size = spec.const("page_size")
    if isinstance(captured, Step):
        structure = _step_in_pages(captured, page_size, rng)
    else:
        structure = paged_structure(
            captured.axes, page_size, rng, causal=is_causal(spec)
        )
    scales = {
        name: [round(rng.uniform(0.25, 1.0), 4) for _ in range(spec.const(*shape))]
        for name in ("q_scale", "k_scale", "v_scale")
        if name in spec.inputs and (shape := spec.inputs[name].shape)
    }
    return replace(
        structure, scalars=spec.scalars, tensors={**structure.tensors, **scales}
    )


def verified(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the structure of verifying a tree of draft tokens in each sequence.

    The captured workload is one of decode; its tokens are those before the tree.
    """
    batch_size = captured.axes["len_indptr"] - 1
    drafts = DRAFT_TOKENS * batch_size
    tokens = keys(captured.axes) + drafts
    axes = {
        "len_indptr": batch_size + 1,
        "num_kv_indices": tokens,
        "num_pages": captured.axes["num_pages"] + drafts,
    }
    page_size = spec.const("page_size")
    prefixes = split(keys(captured.axes), batch_size, 0, rng)
    kv_lens = [prefix + DRAFT_TOKENS for prefix in prefixes]
    structure = _in_pages([DRAFT_TOKENS] * batch_size, kv_lens, axes, page_size, rng)
    mask = [
        seen for prefix in prefixes for row in _tree(rng) for seen in [1] * prefix + row
    ]
    return Structure(
        {**structure.axes, "mask_len": len(mask)},
        {**structure.tensors, "custom_mask": mask},
    )


def verified_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the masks, a byte an element, and the page table fit in a blob."""
    batch_size = captured.axes["len_indptr"] - 1
    tokens = keys(captured.axes) + DRAFT_TOKENS * batch_size
    pages = tokens // spec.const("page_size") + batch_size
    table = 4 * (pages + 3 * captured.axes["len_indptr"])
    return fits_a_blob(DRAFT_TOKENS * tokens + table)


def _tree(rng: random.Random) -> list[list[int]]:
    """Return which tokens of a tree each sees: itself and its ancestors."""
    rows: list[list[int]] = []
    for node in range(DRAFT_TOKENS):
        parent = rng.randrange(node) if node else None
        row = [0] * DRAFT_TOKENS if parent is None else list(rows[parent])
        row[node] = 1
        rows.append(row)
    return rows


def paged_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the page table fits in a blob and a sequence's logits in memory."""
    axes, page_size = captured.axes, spec.const("page_size")
    # Every sequence may end in a partly filled page.
    partly_filled = axes["len_indptr"] - 1 if page_size > 1 else 0
    tokens = seen_keys(axes, is_causal(spec))
    return _fits(spec, axes, tokens // page_size + partly_filled)


def ragged(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the structure of attention over keys that lie one after the other."""
    if isinstance(captured, Step):
        q_lens, kv_lens = captured.q_lens, captured.kv_lens
        return _one_after_another(q_lens, kv_lens)
    return ragged_structure(captured.axes, rng, causal=is_causal(spec))


def traffic(spec: Spec) -> Iterator[CapturedWorkload]:
    """Yield steps of a server under load, of decode or of prefill."""
    if "qo_indptr" in spec.inputs:
        yield from prefill_steps(spec.name, spec.const("num_qo_heads"))
    else:
        yield from decode_steps(spec.name, _MOST_PAGES * spec.const("page_size"))


def is_causal(spec: Spec) -> bool:
    """Return whether a definition's queries see none of the keys behind them."""
    return "noncausal" not in spec.name


def seen_keys(axes: Mapping[str, int], causal: bool) -> int:
    """Return how many keys a workload has that was captured with these axes.

    Where fewer keys than queries were captured, they are those of SGLang's pass over the
    prefix, which is not causal: a causal pass sees the keys of its own queries as well.
    """
    count = keys(axes)
    queries = axes.get("total_q", 0)
    return count + queries if causal and count < queries else count


def ragged_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the indptr arrays fit in a blob and the logits in memory."""
    return _fits(spec, captured.axes, 0)


def _fits(spec: Spec, axes: Mapping[str, int], pages: int) -> bool:
    batch_size = axes["len_indptr"] - 1
    queries = axes.get("total_q", batch_size)
    # A reference holds the logits of one sequence at a time, in float32.
    tokens = seen_keys(axes, is_causal(spec))
    logits = 4 * spec.const("num_qo_heads") * queries * tokens // batch_size**2
    indptrs_and_lengths = 3 * axes["len_indptr"]
    return fits_a_blob(4 * (pages + indptrs_and_lengths)) and logits <= MEMORY_LIMIT


def paged_structure(
    captured: Mapping[str, int],
    page_size: int,
    rng: random.Random,
    *,
    causal: bool = True,
) -> Structure:
    """Return ragged lengths and shuffled pages for the axes of a captured workload.

    The captured cache has pages of one token, so `num_kv_indices` counts tokens;
    with larger pages the same tokens lie in fewer of them.
    """
    batch_size = captured["len_indptr"] - 1
    q_lens, kv_lens = _lengths(captured, batch_size, rng, causal)
    return _in_pages(q_lens, kv_lens, captured, page_size, rng)


def _step_in_pages(step: Step, page_size: int, rng: random.Random) -> Structure:
    """Return a batch in pages; what sequences have alike lies in the same pages."""
    structure = _in_pages(step.q_lens, step.kv_lens, step.axes, page_size, rng)
    shared, pages = step.shared // page_size, list(structure.tensors["kv_indices"])
    starts = structure.tensors["kv_indptr"]
    for start in map(int, starts[1:-1]):
        pages[start : start + shared] = pages[:shared]
    return replace(structure, tensors={**structure.tensors, "kv_indices": pages})


def _in_pages(
    q_lens: Sequence[int],
    kv_lens: Sequence[int],
    captured: Mapping[str, int],
    page_size: int,
    rng: random.Random,
) -> Structure:
    """Return the structure of sequences of these lengths, in pages in random order."""
    batch_size = len(kv_lens)
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


def ragged_structure(
    captured: Mapping[str, int], rng: random.Random, *, causal: bool = True
) -> Structure:
    """Return ragged lengths of sequences whose keys lie one after the other.

    Where the axes are those of a cache with pages of one token, `num_kv_indices` is
    the number of keys.
    """
    batch_size = captured["len_indptr"] - 1
    tokens = {"total_q": captured["total_q"], "num_kv_indices": keys(captured)}
    q_lens, kv_lens = _lengths(tokens, batch_size, rng, causal)
    return _one_after_another(q_lens, kv_lens)


def _one_after_another(q_lens: Sequence[int], kv_lens: Sequence[int]) -> Structure:
    tensors = {"qo_indptr": _indptr(q_lens), "kv_indptr": _indptr(kv_lens)}
    axes = {
        "len_indptr": len(kv_lens) + 1,
        "total_q": sum(q_lens),
        "total_kv": sum(kv_lens),
    }
    return Structure(axes, tensors)


def _lengths(
    captured: Mapping[str, int], batch_size: int, rng: random.Random, causal: bool
) -> tuple[list[int], list[int]]:
    """Return queries and keys of each sequence; no causal query is without a key."""
    tokens = captured["num_kv_indices"]
    if "total_q" not in captured:
        return [1] * batch_size, split(tokens, batch_size, 1, rng)
    total_q = captured["total_q"]
    q_lens = split(total_q, batch_size, 1, rng)
    if tokens < total_q and not causal:
        # the pass over the prefix: every query sees all of it
        return q_lens, split(tokens, batch_size, int(tokens >= batch_size), rng)
    # The cache holds prefix and queries. Where fewer keys than queries were captured,
    # they are the prefix alone: see `seen_keys`.
    prefix = tokens if tokens < total_q else tokens - total_q
    prefixes = split(prefix, batch_size, 0, rng)
    return q_lens, [q + p for q, p in zip(q_lens, prefixes, strict=True)]


def _indptr(lengths: Sequence[int]) -> list[int]:
    return [0, *accumulate(lengths)]


def _last_page_len(kv_len: int, page_size: int) -> int:
    # Ignored where there are no pages, and still within its range.
    return (kv_len - 1) % page_size + 1 if kv_len else 1
