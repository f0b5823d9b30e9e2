"""page_append: rows of keys and values, or latents, written into a paged cache.

Row i goes to token positions[i] of sequence batch_indices[i]. The outputs are the whole
caches: a slot that no row is for keeps what it holds.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.page_append.caches import cache_names, is_hnd
from generator.ops.op_types.page_append.inputs import append_axes, append_inputs
from generator.ops.op_types.page_append.names import ROWS
from generator.ops.op_types.page_append.relations import append_relations
from kernel_judge.comparison.tolerance import EXACT, Override
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES = tuple(
    Override(f"{cache}_out", EXACT, "numbers are copied, none is computed")
    for cache in ROWS
)
_RAGGED = tuple(Stream("appended").integers(1, 300, 16))
_LONG = tuple(Stream("appended at length").integers(1, 4096, 48))
# (length after the append, of it new) of each sequence, and MLA's page size
_LENGTHS = {
    "one-token": ("small", ((1, 1),), 1),
    "decode": ("small", ((17, 1), (64, 1), (65, 1), (1, 1), (129, 1)), 64),
    "whole-prompts": ("small", ((1, 1), (63, 63), (64, 64), (65, 65)), 16),
    "later-chunks": ("small", ((80, 16), (129, 1), (130, 66), (64, 33)), 64),
    "untouched-sequences": ("small", ((70, 0), (3, 2), (0, 0), (64, 0), (99, 40)), 32),
    "shuffled": ("small", ((80, 16), (65, 65), (130, 3)), 1),
    "batch": ("medium", tuple((n, n % 97 + 1) for n in _RAGGED if n > 97), 64),
    "past-limits": (LIMITS, ((8_300, 2_100), *[(1_000, 100)] * 36), 64),
    "long": ("large", tuple((n, n % 509 + 1) for n in _LONG if n > 509), 64),
}


def cases(definition: Definition) -> list[Case]:
    """Return single tokens, whole prompts, later chunks, sequences left alone."""
    return [_case(definition, name, *lengths) for name, lengths in _LENGTHS.items()]


def _case(
    definition: Definition,
    name: str,
    size: str,
    lengths: tuple[tuple[int, int], ...],
    mla_page_size: int,
) -> Case:
    kv_lens, new = (tuple(part) for part in zip(*lengths, strict=True))
    fixed = definition.axes.get("page_size")
    axes = append_axes(kv_lens, new, fixed or mla_page_size)
    if fixed:
        del axes["page_size"]
    params = {"kv_lens": kv_lens, "new": new, "shuffled": name == "shuffled"}
    return Case(name, size, axes, params)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `append_inputs` for their shapes."""
    return append_inputs(definition, case, stream)


def oracle(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return the caches, shaped as they came: each slot asks which row is for it."""
    names = cache_names(definition)
    heads_first = is_hnd(definition)
    page_size = inputs[names[0]].shape[2 if heads_first else 1]
    # page · page_size + slot of each token, sequence after sequence
    row_of = torch.full((len(inputs[names[0]]) * page_size,), -1, dtype=torch.int64)
    starts = inputs["kv_indptr"].tolist()
    sequences, tokens = (inputs[n].cpu() for n in ("batch_indices", "positions"))
    for b in range(len(starts) - 1):
        rows = (sequences == b).nonzero()[:, 0]
        pages = inputs["kv_indices"][starts[b] : starts[b + 1]].cpu().long()
        slots = (pages[:, None] * page_size + torch.arange(page_size)).flatten()
        row_of[slots[tokens[rows].long()]] = rows
    row_of = row_of.to(inputs[names[0]].device)
    caches = []
    for name in names:
        cache = inputs[name].transpose(1, 2) if heads_first else inputs[name]
        slots = cache.flatten(0, 1)
        written = (row_of >= 0).view(-1, *[1] * (slots.dim() - 1))
        full = torch.where(written, inputs[ROWS[name]][row_of.clamp_min(0)], slots)
        full = full.view(cache.shape)
        caches.append(full.transpose(1, 2).contiguous() if heads_first else full)
    return tuple(caches)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the caches that were given, which flashinfer.page's kernels write to."""
    from flashinfer import page

    names = cache_names(definition)
    rows = [inputs[ROWS[name]] for name in names]
    where = [inputs["batch_indices"], inputs["positions"]]
    caches = tuple(inputs[name] for name in names)
    table = [inputs[n] for n in ("kv_indices", "kv_indptr", "kv_last_page_len")]
    if "ckv_cache" in inputs:
        page.append_paged_mla_kv_cache(*rows, *where, *caches, *table)
    else:
        layout = "HND" if is_hnd(definition) else "NHD"
        page.append_paged_kv_cache(*rows, *where, caches, *table, kv_layout=layout)
    return caches


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=append_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)
