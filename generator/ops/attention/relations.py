"""Relations of attention: the result does not depend on how sequences are laid out.

The relations move the same queries and keys to other pages, reorder the batch, split
the queries or the keys, or pass them to another definition of the same geometry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch

from generator.ops.attention.cases import paged_case, ragged_case
from generator.ops.attention.sequences import (
    Batch,
    is_paged,
    is_prefill,
    laid_out,
    sequences_of,
)
from generator.testing.definition import Definition
from generator.testing.relation import (
    Asked,
    Bound,
    Claim,
    Outputs,
    RelatedCase,
    Relation,
    Subject,
    alike,
)
from generator.testing.tolerance import Tolerance

_SAME_LOGITS = (
    "float32 sums in another order: logits of up to 30 are off by some 2^-24·30, 2e-6, "
    "and the weights by as much of their value"
)
ALIKE = {
    "output": Bound(
        Tolerance(rtol=8e-3, atol=5e-5, nmse=1e-6),
        f"{_SAME_LOGITS}, far below 5e-5 of values up to 2.5; both sides round nearly "
        "the same value once, to neighbours at most: 2^-7, and that is rare",
    ),
    "lse": Bound(Tolerance(rtol=2e-6, atol=1e-5, nmse=1e-10), _SAME_LOGITS),
}
MERGED = {
    "output": Bound(
        Tolerance(rtol=4e-3, atol=1e-2, nmse=1e-5),
        "both parts and the whole are rounded to bfloat16: half an ulp is 2^-8 at most, "
        "of values up to 2.5 that is 1e-2; three roundings of 2.4e-6 (2^-8/sqrt(3)/1.44, "
        "squared) are 7e-6 of the power",
    ),
    "lse": ALIKE["lse"],
}
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
    found = [
        Relation("batch-reversed", _batch_reversed, cases),
        Relation("batch-in-two", _batch_in_two, cases),
        Relation("kv-in-two-merged", _kv_in_two, cases),
    ]
    if is_prefill(definition):
        found.append(Relation("prefill-in-chunks", _in_chunks, cases))
        found.append(Relation("prefill-by-one-query", _by_one_query, cases))
    if is_paged(definition):
        found.append(Relation("pages-permuted", _pages_permuted, cases))
        if is_prefill(definition):
            decode = _peer(definition, prefill=False)
            found.append(Relation("prefill-is-decode", _is_decode, cases, decode))
        if definition.axes["page_size"] > 1:
            single = _peer(definition, prefill=is_prefill(definition), page_size=1)
            found.append(Relation("page-size-1", _page_size_1, cases, single))
    return found


def _cases(definition: Definition) -> list[RelatedCase]:
    found = []
    shapes = _PREFILL if is_prefill(definition) else _DECODE
    for name, (size, pairs) in shapes.items():
        q_lens, kv_lens = [q for q, _ in pairs], [kv for _, kv in pairs]
        if is_paged(definition):
            page_size = definition.axes["page_size"]
            case = paged_case(name, size, q_lens, kv_lens, page_size)
        else:
            case = ragged_case(name, size, q_lens, kv_lens)
        found.append(RelatedCase(name, size, case.axes, case.params))
    return found


def _peer(
    definition: Definition, *, prefill: bool, **changes: int
) -> Callable[[Definition], bool]:
    """Return a filter for definitions of a stage whose axes differ only by `changes`."""
    axes = {**definition.axes, **changes}

    def accepts(other: Definition) -> bool:
        return other.axes == axes and is_prefill(other) == prefill

    return accepts


def _run_on(run: Asked, subject: Subject, batch: Batch, *key: str) -> Outputs:
    """Return the outputs of `run()` for a batch; `key` seeds the order of its pages."""
    inputs = subject.inputs
    scale = inputs["sm_scale"]
    return run(laid_out(run.definition, batch, scale, subject.trial.case.name, *key))


def _batch(subject: Subject) -> Batch:
    return sequences_of(subject.definition, subject.inputs)


def _pages_permuted(subject: Subject) -> Iterator[Claim]:
    """Move the tokens to other pages, beside other stale values."""
    actual = _run_on(subject.run, subject, _batch(subject), "permuted")
    yield from alike(subject.whole, actual, ALIKE)


def _page_size_1(subject: Subject) -> Iterator[Claim]:
    """Call the definition of page size 1 on the same sequences."""
    actual = _run_on(subject.other(), subject, _batch(subject), "page size 1")
    yield from alike(subject.whole, actual, ALIKE)


def _batch_reversed(subject: Subject) -> Iterator[Claim]:
    batch = _batch(subject)
    actual = _run_on(subject.run, subject, batch[::-1], "reversed")
    parts = _by_sequence(actual, batch[::-1])
    yield from alike(subject.whole, _joined(parts[::-1]), ALIKE)


def _by_sequence(outputs: Outputs, batch: Batch) -> list[Outputs]:
    """Return the outputs of each sequence."""
    lengths = [one.q_len for one in batch]
    rows = {name: value.split(lengths) for name, value in outputs.items()}
    return [{name: rows[name][i] for name in rows} for i in range(len(batch))]


def _joined(parts: Sequence[Outputs]) -> Outputs:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _batch_in_two(subject: Subject) -> Iterator[Claim]:
    batch = _batch(subject)
    cut = (len(batch) + 1) // 2
    parts = [
        _run_on(subject.run, subject, some, "in two")
        for some in (batch[:cut], batch[cut:])
    ]
    yield from alike(subject.whole, _joined(parts), ALIKE)


def _in_chunks(subject: Subject) -> Iterator[Claim]:
    """Call run() on the first half of each sequence's queries, then on the second.

    As in a cache, the second call also sees the keys of the first.
    """
    batch = _batch(subject)
    cuts = [(one.q_len + 1) // 2 for one in batch]
    first = [
        one.part(slice(cut), slice(one.kv_len - one.q_len + cut))
        for one, cut in zip(batch, cuts, strict=True)
    ]
    # a sequence of one query has no second half
    later = [
        one.part(slice(cut, None), slice(None))
        for one, cut in zip(batch, cuts, strict=True)
        if one.q_len > cut
    ]
    second = iter(_by_sequence(_run_on(subject.run, subject, later, "later"), later))
    parts = []
    early = _by_sequence(_run_on(subject.run, subject, first, "first"), first)
    for one, cut, own in zip(batch, cuts, early, strict=True):
        parts += [own, next(second)] if one.q_len > cut else [own]
    yield from alike(subject.whole, _joined(parts), ALIKE)


def _some_queries(batch: Batch) -> tuple[Batch, torch.Tensor]:
    """Return single-query sequences with the keys that each query sees.

    Takes the first, a middle and the last query of each sequence. Also returns their
    rows in the batch's outputs: int64 [queries].
    """
    found: Batch = []
    rows: list[int] = []
    start = 0
    for one in batch:
        before = one.kv_len - one.q_len
        for i in sorted({0, one.q_len // 2, one.q_len - 1}):
            found.append(one.part(slice(i, i + 1), slice(before + i + 1)))
            rows.append(start + i)
        start += one.q_len
    return found, torch.tensor(rows)


def _single_queries(subject: Subject, run: Asked) -> Iterator[Claim]:
    singles, rows = _some_queries(_batch(subject))
    expected = {name: value[rows] for name, value in subject.whole.items()}
    yield from alike(expected, _run_on(run, subject, singles, "one query"), ALIKE)


def _by_one_query(subject: Subject) -> Iterator[Claim]:
    """Call run() on single queries: a prefill of one query is a decode."""
    yield from _single_queries(subject, subject.run)


def _is_decode(subject: Subject) -> Iterator[Claim]:
    """Call the decode of the same geometry on single queries of the prefill."""
    yield from _single_queries(subject, subject.other())


def _kv_in_two(subject: Subject) -> Iterator[Claim]:
    """Attend with each sequence's last query over two parts of its keys, then merge.

    Sequences of one key are left out.
    """
    batch = _batch(subject)
    last = _by_sequence(subject.whole, batch)
    rows = [i for i, one in enumerate(batch) if one.kv_len > 1]
    expected = _joined([{n: v[-1:] for n, v in last[i].items()} for i in rows])
    one_query = [batch[i].part(slice(-1, None), slice(None)) for i in rows]
    # a cut in the middle would make both parts alike and hide errors
    cuts = [max(1, one.kv_len // 3) for one in one_query]
    pairs = list(zip(one_query, cuts, strict=True))
    early = [one.part(slice(None), slice(cut)) for one, cut in pairs]
    late = [one.part(slice(None), slice(cut, None)) for one, cut in pairs]
    parts = [_run_on(subject.run, subject, part, "in two") for part in (early, late)]
    yield from alike(expected, merged(*parts), MERGED)


def merged(first: Outputs, second: Outputs) -> Outputs:
    """Merge attention over two sets of keys by base-2 LSE.

    Each has output [queries, heads, d] and LSE [queries, heads]; the result is float64.
    """
    lse = torch.stack([first["lse"].double(), second["lse"].double()])
    total = torch.logsumexp(lse * math.log(2.0), dim=0) / math.log(2.0)
    weights = torch.exp2(lse - total)[..., None]
    output = weights[0] * first["output"].double() + weights[1] * second["output"]
    return {"output": output, "lse": total}
