"""Relations of attention: the result does not depend on how sequences are laid out.

The relations move the same queries and keys to other pages, reorder the batch, split
the queries or the keys, or pass them to another definition of the same geometry.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from generator.ops.attention.cases import paged_case, ragged_case
from generator.ops.attention.related import (
    ALIKE,
    MERGED,
    batch_of,
    head_axes,
    merged,
    peer,
    run_on,
    takes_flag,
)
from generator.ops.attention.sequences import Batch, is_paged, is_prefill
from generator.ops.attention.variant import has_mask, variant_of
from generator.ops.attention.variant_relations import variant_relations
from generator.ops.head_relations import head_shards
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Claim,
    Outputs,
    ReferenceCall,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

# key lengths around a page and a block of 64 keys
_SHORT = (1, 31, 32, 33, 63, 64, 65)
_DECODE = {
    "short": ("small", tuple((1, n) for n in _SHORT)),
    "long": ("medium", ((1, 700), (1, 2), (1, 129))),
}
_PREFILL = {
    "whole-prompts": ("small", tuple((n, n) for n in _SHORT)),
    "later-chunks": ("medium", ((16, 80), (3, 300), (65, 129))),
}


def attention_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a paged or ragged attention definition.

    Prefill is also compared with the decode of the same geometry, and a page size above
    1 with page size 1, if the test file has such a definition.
    """
    cases = _cases(definition)
    relations = [
        Relation("batch-reversed", _batch_reversed, cases),
        Relation("batch-in-two", _batch_in_two, cases),
        Relation("kv-in-two-merged", _kv_in_two, cases),
    ]
    if is_prefill(definition):
        relations.append(Relation("prefill-in-chunks", _in_chunks, cases))
        relations.append(Relation("prefill-by-one-query", _by_one_query, cases))
    if not variant_of(definition).slopes:
        relations.append(head_shards(head_axes(definition), ALIKE, cases[:1]))
    relations += variant_relations(definition, cases)
    if takes_flag(definition):
        alone = Relation("output-alone", _output_alone, cases[:1], other_outputs=True)
        relations.append(alone)
    if is_paged(definition):
        relations.append(Relation("pages-permuted", _pages_permuted, cases))
        if is_prefill(definition):
            decode = peer(definition, prefill=False)
            relations.append(Relation("prefill-is-decode", _is_decode, cases, decode))
        if definition.axes["page_size"] > 1:
            single = peer(definition, prefill=is_prefill(definition), page_size=1)
            relations.append(Relation("page-size-1", _page_size_1, cases, single))
    return relations


def _cases(definition: Definition) -> list[RelatedCase]:
    shapes = dict(_PREFILL if is_prefill(definition) else _DECODE)
    left = variant_of(definition).window_left
    if left >= 0:
        queries = 9 if is_prefill(definition) else 1
        shapes["beyond-window"] = ("small", ((queries, left + 20), (1, left + 2)))
    return [
        related_case(definition, name, size, pairs)
        for name, (size, pairs) in shapes.items()
    ]


def related_case(
    definition: Definition, name: str, size: str, pairs: Sequence[tuple[int, int]]
) -> RelatedCase:
    """Return a case of sequences, pairs of query and key lengths, in pages or without."""
    q_lens, kv_lens = [q for q, _ in pairs], [kv for _, kv in pairs]
    if is_paged(definition):
        page_size, masked = definition.axes["page_size"], has_mask(definition)
        case = paged_case(name, size, q_lens, kv_lens, page_size, masked)
    else:
        case = ragged_case(name, size, q_lens, kv_lens)
    return RelatedCase(name, size, case.axes, case.params)


def _output_alone(subject: RelatedCalls) -> Iterator[Claim]:
    """Ask for no LSE: the output is the one value, and the same."""
    (output,) = subject.run.answer({**subject.inputs, "return_lse": False})
    yield Claim("output", output.cpu(), subject.whole["output"], ALIKE["output"])


def _pages_permuted(subject: RelatedCalls) -> Iterator[Claim]:
    """Move the tokens to other pages, beside other stale values."""
    actual = run_on(subject.run, subject, batch_of(subject), "permuted")
    yield from alike(subject.whole, actual, ALIKE)


def _page_size_1(subject: RelatedCalls) -> Iterator[Claim]:
    """Call the definition of page size 1 on the same sequences."""
    actual = run_on(subject.other(), subject, batch_of(subject), "page size 1")
    yield from alike(subject.whole, actual, ALIKE)


def _batch_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    batch = batch_of(subject)
    actual = run_on(subject.run, subject, batch[::-1], "reversed")
    parts = _by_sequence(actual, batch[::-1])
    yield from alike(subject.whole, _joined(parts[::-1]), ALIKE)


def _by_sequence(outputs: Outputs, batch: Batch) -> list[Outputs]:
    """Return the outputs of each sequence."""
    lengths = [one.q_len for one in batch]
    rows = {name: value.split(lengths) for name, value in outputs.items()}
    return [{name: rows[name][i] for name in rows} for i in range(len(batch))]


def _joined(parts: Sequence[Outputs]) -> Outputs:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _batch_in_two(subject: RelatedCalls) -> Iterator[Claim]:
    batch = batch_of(subject)
    cut = (len(batch) + 1) // 2
    parts = [
        run_on(subject.run, subject, some, "in two")
        for some in (batch[:cut], batch[cut:])
    ]
    yield from alike(subject.whole, _joined(parts), ALIKE)


def _in_chunks(subject: RelatedCalls) -> Iterator[Claim]:
    """Call run() on the first half of each sequence's queries, then on the second.

    As in a cache, the second call also sees the keys of the first. Without a causal
    mask both calls see all keys.
    """
    batch = batch_of(subject)
    cuts = [(one.q_len + 1) // 2 for one in batch]
    causal = variant_of(subject.definition).causal
    first = [
        one.part(slice(cut), slice(one.kv_len - one.q_len + cut if causal else None))
        for one, cut in zip(batch, cuts, strict=True)
    ]
    # a sequence of one query has no second half
    later = [
        one.part(slice(cut, None), slice(None))
        for one, cut in zip(batch, cuts, strict=True)
        if one.q_len > cut
    ]
    second = iter(_by_sequence(run_on(subject.run, subject, later, "later"), later))
    parts = []
    early = _by_sequence(run_on(subject.run, subject, first, "first"), first)
    for one, cut, head in zip(batch, cuts, early, strict=True):
        parts += [head, next(second)] if one.q_len > cut else [head]
    yield from alike(subject.whole, _joined(parts), ALIKE)


def _some_queries(batch: Batch, causal: bool) -> tuple[Batch, torch.Tensor]:
    """Return single-query sequences with the keys that each query sees.

    Takes the first, a middle and the last query of each sequence. Also returns their
    rows in the batch's outputs: int64 [queries].
    """
    parts: Batch = []
    rows: list[int] = []
    start = 0
    for one in batch:
        before = one.kv_len - one.q_len
        for i in sorted({0, one.q_len // 2, one.q_len - 1}):
            seen = slice(before + i + 1 if causal else None)
            parts.append(one.part(slice(i, i + 1), seen))
            rows.append(start + i)
        start += one.q_len
    return parts, torch.tensor(rows)


def _single_queries(subject: RelatedCalls, run: ReferenceCall) -> Iterator[Claim]:
    causal = variant_of(subject.definition).causal
    singles, rows = _some_queries(batch_of(subject), causal)
    expected = {name: value[rows] for name, value in subject.whole.items()}
    yield from alike(expected, run_on(run, subject, singles, "one query"), ALIKE)


def _by_one_query(subject: RelatedCalls) -> Iterator[Claim]:
    """Call run() on single queries: a prefill of one query is a decode."""
    yield from _single_queries(subject, subject.run)


def _is_decode(subject: RelatedCalls) -> Iterator[Claim]:
    """Call the decode of the same geometry on single queries of the prefill."""
    yield from _single_queries(subject, subject.other())


def _kv_in_two(subject: RelatedCalls) -> Iterator[Claim]:
    """Attend with each sequence's last query over two parts of its keys, then merge.

    Sequences of one key are left out, and keys before a sliding window. A sink would
    count in both parts: it is minus infinity here.
    """
    batch = batch_of(subject)
    rows = [i for i, one in enumerate(batch) if one.kv_len > 1]
    window = slice(-1 - variant_of(subject.definition).window_left or None, None)
    one_query = [batch[i].part(slice(-1, None), window) for i in rows]
    changed = {n: v - math.inf for n, v in subject.inputs.items() if n == "sinks"}
    if changed:
        expected = run_on(subject.run, subject, one_query, "whole", **changed)
    else:
        last = _by_sequence(subject.whole, batch)
        expected = _joined([{n: v[-1:] for n, v in last[i].items()} for i in rows])
    # a cut in the middle would make both parts alike and hide errors
    cuts = [max(1, one.kv_len // 3) for one in one_query]
    pairs = list(zip(one_query, cuts, strict=True))
    early = [one.part(slice(None), slice(cut)) for one, cut in pairs]
    late = [one.part(slice(None), slice(cut, None)) for one, cut in pairs]
    parts = [
        run_on(subject.run, subject, part, "in two", **changed)
        for part in (early, late)
    ]
    slopes = variant_of(subject.definition).slopes
    if slopes:
        # alone, the first part's query stands nearer to its keys: the output is the same
        after = torch.tensor([one.kv_len - cut for one, cut in pairs])
        shift = after[:, None].double() * torch.tensor(slopes, dtype=torch.float64)
        parts[0]["lse"] = parts[0]["lse"].double() - shift / math.log(2.0)
    yield from alike(expected, merged(*parts), MERGED)
