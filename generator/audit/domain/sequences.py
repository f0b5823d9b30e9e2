"""Sequences of an attention's batch: their lengths, and their parts as batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from generator.support.paging import indptr, input_table, kv_lengths, page_counts

from .mutant import Inputs


def key_lengths(inputs: Inputs, page_size: int | None) -> list[int]:
    """Return the number of keys of each sequence; page_size None is without pages."""
    if page_size is None:
        lengths: list[int] = inputs["kv_indptr"].diff().tolist()
        return lengths
    return kv_lengths(input_table(inputs), page_size)


def with_keys(
    inputs: Inputs, page_size: int, sequences: Sequence[int], lengths: Sequence[int]
) -> dict[str, Any]:
    """Return the page table of given sequences, cut to their first so many keys."""
    starts = inputs["kv_indptr"].tolist()
    counts = page_counts(lengths, page_size)
    pages = [
        inputs["kv_indices"][starts[sequence] : starts[sequence] + count]
        for sequence, count in zip(sequences, counts, strict=True)
    ]
    table: dict[str, Any] = {
        "kv_indptr": indptr(counts),
        "kv_indices": torch.cat(pages),
    }
    if "kv_last_page_len" in inputs:
        last = [
            length - (count - 1) * page_size if count else 1
            for length, count in zip(lengths, counts, strict=True)
        ]
        table["kv_last_page_len"] = torch.tensor(last, dtype=torch.int32)
    return table


def one_query_each(
    inputs: Inputs, page_size: int | None, sequence: int, counts: Sequence[int]
) -> dict[str, Any]:
    """Return a batch of one sequence's queries, each with its first so many keys."""
    first, end = inputs["qo_indptr"][sequence : sequence + 2].tolist()
    queries = [name for name in ("q", "q_nope", "q_pe") if name in inputs]
    given = {
        **inputs,
        **{name: inputs[name][first:end] for name in queries},
        "qo_indptr": torch.arange(len(counts) + 1, dtype=torch.int32),
    }
    if page_size is not None:
        return given | with_keys(inputs, page_size, [sequence] * len(counts), counts)
    start = int(inputs["kv_indptr"][sequence])
    rows = torch.cat([torch.arange(start, start + count) for count in counts])
    given["kv_indptr"] = indptr(counts)
    for name in ("k", "v"):
        given[name] = inputs[name][rows]
    return given
