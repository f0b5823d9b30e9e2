"""Workloads of appending: a captured prefill's queries, each with a key to append."""

from __future__ import annotations

import random
from itertools import pairwise

from generator.ops.attention.workloads import paged_structure
from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure, fits_a_blob

# of a definition that leaves it to the call
PAGE_SIZE = 64


def appended(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the last tokens of sequences, in a cache twice as large as they need."""
    page_size = _page_size(spec)
    tokens = _tokens(captured)
    lengths = {**captured.axes, "num_kv_indices": tokens, "num_pages": 2 * tokens}
    structure = paged_structure(lengths, page_size, rng)
    batch_indices: list[int] = []
    positions: list[int] = []
    pages = [end - start for start, end in pairwise(structure.tensors["kv_indptr"])]
    starts = structure.tensors["qo_indptr"]
    for b, last in enumerate(structure.tensors["kv_last_page_len"]):
        kv_len = int((pages[b] - 1) * page_size + last)
        q_len = int(starts[b + 1] - starts[b])
        batch_indices += [b] * q_len
        positions += range(kv_len - q_len, kv_len)
    axes = {**structure.axes, "nnz_kv": len(positions), "page_size": page_size}
    rows = {"batch_indices": batch_indices, "positions": positions}
    return Structure(axes, {**structure.tensors, **rows})


def appended_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the numbers fit a blob, and a cache in memory."""
    axes, tokens = captured.axes, _tokens(captured)
    batch = axes["len_indptr"] - 1
    pages = tokens // _page_size(spec) + batch
    is_latent = "num_kv_heads" not in spec.axes
    heads = 1 if is_latent else spec.const("num_kv_heads")
    length = spec.const("head_dim_ckv" if is_latent else "head_dim")
    numbers = 2 * axes["total_q"] + pages + 2 * batch + 1
    return fits_a_blob(4 * numbers) and 2 * tokens * 2 * heads * length <= MEMORY_LIMIT


def _tokens(captured: CapturedWorkload) -> int:
    """Return the tokens after the append.

    A captured cache with fewer tokens than queries holds prefixes only: the queries'
    own come on top.
    """
    tokens, queries = captured.axes["num_kv_indices"], captured.axes["total_q"]
    return tokens if tokens >= queries else tokens + queries


def _page_size(spec: Spec) -> int:
    return spec.axes["page_size"].value or PAGE_SIZE
