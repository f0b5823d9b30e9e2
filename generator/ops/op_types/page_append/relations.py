"""Relations of appending: order, steps, page numbers and layout do not matter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from generator.ops.attention.oracle import oracle_paged, oracle_ragged
from generator.ops.op_types.page_append.caches import (
    by_token,
    cache_names,
    is_hnd,
    page_size_of,
)
from generator.ops.op_types.page_append.inputs import append_axes
from generator.ops.op_types.page_append.names import ROWS
from generator.ops.paging import indptr, input_table, token_slots
from generator.ops.row_relations import reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Inputs
from kernel_judge.relation import (
    Bound,
    Claim,
    Outputs,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_SAME = Bound(EXACT, "numbers are copied, none is computed")
_ATTENDED = Bound(
    Tolerance(rtol=1e-12, atol=1e-12, nmse=1e-20),
    "float64 attention over the same numbers, read from pages or one after the other",
)
# after the append, of it new
_LENGTHS = ((80, 16), (129, 1), (5, 5), (64, 33))
_MLA_PAGE_SIZE = 16


def append_relations(definition: Definition) -> list[Relation]:
    """Return the relations of appending; the other layout is a definition of its own."""
    kv_lens, new = (tuple(part) for part in zip(*_LENGTHS, strict=True))
    fixed = definition.axes.get("page_size")
    axes = append_axes(kv_lens, new, fixed or _MLA_PAGE_SIZE)
    if fixed:
        del axes["page_size"]
    params = {"kv_lens": kv_lens, "new": new}
    cases = [RelatedCase("four-sequences", "small", axes, params)]
    bounds = {f"{name}_out": _SAME for name in cache_names(definition)}
    relations = [
        reordered("rows-reversed", ["nnz_kv"], bounds, cases),
        Relation("in-two-appends", _in_two, cases),
        Relation("twice-is-once", _twice, cases),
        Relation("pages-renamed", _pages_renamed, cases),
        Relation("append-then-attend", _attend, cases),
    ]
    if is_hnd(definition):
        nhd = Relation("transposed-is-nhd", _is_nhd, cases, _nhd_of(definition))
        relations.append(nhd)
    return relations


def _nhd_of(definition: Definition) -> Any:
    def accepts(other: Definition) -> bool:
        return other.axes == definition.axes and not is_hnd(other)

    return accepts


def _bounds(subject: RelatedCalls) -> dict[str, Bound]:
    return {f"{name}_out": _SAME for name in cache_names(subject.definition)}


def _after(subject: RelatedCalls, outputs: Outputs) -> Inputs:
    """Return the inputs with the caches that an append returned."""
    names = cache_names(subject.definition)
    return {**subject.inputs, **{name: outputs[f"{name}_out"] for name in names}}


def _some_rows(inputs: Inputs, rows: slice) -> Inputs:
    names = [n for n in (*ROWS.values(), "batch_indices", "positions") if n in inputs]
    return {**inputs, **{name: inputs[name][rows].contiguous() for name in names}}


def _in_two(subject: RelatedCalls) -> Iterator[Claim]:
    """Append the first rows, then the others to what that gave."""
    cut = len(subject.inputs["positions"]) // 3
    first = subject.run(_some_rows(subject.inputs, slice(cut)))
    later = _some_rows(_after(subject, first), slice(cut, None))
    yield from alike(subject.whole, subject.run(later), _bounds(subject))


def _twice(subject: RelatedCalls) -> Iterator[Claim]:
    """Append the same rows to what the append gave."""
    again = subject.run(_after(subject, subject.whole))
    yield from alike(subject.whole, again, _bounds(subject))


def _pages_renamed(subject: RelatedCalls) -> Iterator[Claim]:
    """Move every page to another number, in the caches and in the table."""
    inputs, names = subject.inputs, cache_names(subject.definition)
    order = Stream(subject.trial.case.name, "pages").permutation(len(inputs[names[0]]))
    moved = {name: inputs[name][order] for name in names}
    # page p is where order has p
    moved["kv_indices"] = order.argsort()[inputs["kv_indices"].long()].to(torch.int32)
    actual = subject.run({**inputs, **moved})
    expected = {name: value[order] for name, value in subject.whole.items()}
    yield from alike(expected, actual, _bounds(subject))


def _is_nhd(subject: RelatedCalls) -> Iterator[Claim]:
    """Call the definition of layout NHD on the transposed caches."""
    names = cache_names(subject.definition)
    turned = {n: subject.inputs[n].transpose(1, 2).contiguous() for n in names}
    actual = subject.other()({**subject.inputs, **turned})
    expected = {n: v.transpose(1, 2) for n, v in subject.whole.items()}
    yield from alike(expected, actual, _bounds(subject))


def _attend(subject: RelatedCalls) -> Iterator[Claim]:
    """Attend, in float64, over the pages after the append and over the tokens alone.

    The last query of each sequence has two heads for each head of the keys. Latents are
    keys together with their rotary parts, and values alone.
    """
    definition, inputs = subject.definition, subject.inputs
    page_size = page_size_of(definition, inputs)
    tokens = _tokens(definition, inputs, page_size)
    caches = [
        by_token(definition, subject.whole[f"{name}_out"])
        for name in cache_names(definition)
    ]
    k, v = _as_attended(definition, *tokens)
    k_cache, v_cache = _as_attended(definition, *caches)
    shape = (len(inputs["kv_last_page_len"]), 2 * k.shape[-2], k.shape[-1])
    q = Stream(subject.trial.case.name, "queries").values(shape)
    one_query = {**inputs, "q": q, "sm_scale": k.shape[-1] ** -0.5}
    lengths = [len(slots) for slots in token_slots(input_table(inputs), page_size)]
    alone = {"k": k, "v": v, "kv_indptr": indptr(lengths)}
    one_each = torch.arange(len(q) + 1, dtype=torch.int32)
    actual = oracle_paged(q, k_cache, v_cache, one_query)
    expected = oracle_ragged({**one_query, **alone, "qo_indptr": one_each})
    for name, a, e in zip(("output", "lse"), actual, expected, strict=True):
        yield Claim(f"attention's {name}", a, e, _ATTENDED)


def _tokens(
    definition: Definition, inputs: Inputs, page_size: int
) -> list[torch.Tensor]:
    """Return what each cache holds of all sequences after the append, by token."""
    slots = token_slots(input_table(inputs), page_size)
    starts = [0]
    for rows in slots:
        starts.append(starts[-1] + len(rows))
    first = torch.tensor(starts)[inputs["batch_indices"].long()]
    caches = []
    for name in cache_names(definition):
        cache = by_token(definition, inputs[name]).flatten(0, 1)
        held = cache[torch.cat(slots)]
        held[first + inputs["positions"]] = inputs[ROWS[name]]
        caches.append(held)
    return caches


def _as_attended(
    definition: Definition, first: torch.Tensor, second: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return keys and values [..., heads, d] of the two caches."""
    if "head_dim_ckv" not in definition.axes:
        return first, second
    return torch.cat([first, second], dim=-1).unsqueeze(-2), first.unsqueeze(-2)
