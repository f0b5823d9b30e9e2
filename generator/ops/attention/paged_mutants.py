"""Domain mutants of reading a page table: order, ends, last pages."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch.nn.functional import pad

from generator.ops.attention.masks import mask_rows
from generator.ops.attention.sequences import with_keys
from generator.ops.mutants import Change, DomainMutant, Inputs, on_inputs
from generator.ops.paging import key_lengths
from kernel_judge.definition import Definition


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants; those of kv_last_page_len need page_size > 1."""
    page_size = definition.axes["page_size"]
    changes: dict[str, Change] = {
        "page order ignored": lambda i: {
            "kv_indices": torch.arange(len(i["kv_indices"]), dtype=torch.int32)
        },
        "pages sorted": lambda i: {"kv_indices": i["kv_indices"].sort().values},
        "first page of a sequence ignored": lambda i: _from_second_page(i, page_size),
        "last page of a sequence ignored": lambda i: _shorter(i, page_size, page_size),
        "last token ignored": lambda i: _shorter(i, page_size, 1),
        "first page read for the second": _first_twice,
        "kv_indptr off by one": _later,
    }
    names = definition.interface.inputs
    if page_size > 1 or "qo_indptr" in names:
        # in decode the order of one-token pages does not matter
        changes["pages of a sequence reversed"] = _reversed
    if "kv_last_page_len" in names and page_size > 1:
        changes["last page full"] = lambda i: {
            "kv_last_page_len": torch.full_like(i["kv_last_page_len"], page_size)
        }
        changes["last page one too long"] = lambda i: {
            "kv_last_page_len": (i["kv_last_page_len"] + 1).clamp_max(page_size)
        }
    if "custom_mask" in names:
        changes = {name: _masked(of, page_size) for name, of in changes.items()}
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


def _masked(change: Change, page_size: int) -> Change:
    """Cut the mask with the keys; a key that is one too many is seen.

    A mask of other lengths is no wrong answer: the reference refuses it.
    """

    def changed(inputs: Inputs) -> dict[str, Any]:
        new = change(inputs)
        queries = inputs["qo_indptr"].diff().tolist()
        before, after = (key_lengths(i, page_size) for i in (inputs, {**inputs, **new}))
        shapes = list(zip(queries, before, strict=True))
        parts = [
            pad(rows, (0, length - rows.shape[1]), value=True).flatten()
            for rows, length in zip(
                mask_rows(inputs["custom_mask"], shapes), after, strict=True
            )
        ]
        return {**new, "custom_mask": torch.cat(parts)}

    return changed


def _reversed(inputs: Inputs) -> dict[str, Any]:
    starts = inputs["kv_indptr"][1:-1].tolist()
    parts = torch.tensor_split(inputs["kv_indices"], starts)
    return {"kv_indices": torch.cat([part.flip(0) for part in parts])}


def _from_second_page(inputs: Inputs, page_size: int) -> dict[str, Any]:
    """Drop the first page of every sequence with at least two."""
    starts = inputs["kv_indptr"].tolist()
    pages, counts = [], []
    for first, end in pairwise(starts):
        skipped = 1 if end - first > 1 else 0
        pages.append(inputs["kv_indices"][first + skipped : end])
        counts.append(end - first - skipped)
    ends = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
    return {"kv_indptr": ends, "kv_indices": torch.cat(pages)}


def _shorter(inputs: Inputs, page_size: int, by: int) -> dict[str, Any]:
    """Cut every sequence by one token, or (`by` = page_size) by its last page."""
    lengths = key_lengths(inputs, page_size)
    if by == 1:
        cut = [max(length - 1, 0) for length in lengths]
    else:
        cut = [max(length - 1, 0) // by * by for length in lengths]
    return with_keys(inputs, page_size, range(len(lengths)), cut)


def _first_twice(inputs: Inputs) -> dict[str, Any]:
    pages = inputs["kv_indices"].clone()
    if len(pages) > 1:
        pages[1] = pages[0]
    return {"kv_indices": pages}


def _later(inputs: Inputs) -> dict[str, Any]:
    starts = inputs["kv_indptr"].clone()
    starts[1:-1] = (starts[1:-1] + 1).clamp_max(int(starts[-1]))
    return {"kv_indptr": starts}


PAGES = "kv_indptr kv_indices page_size"
"""Names that the mutants of a page table read."""
