"""Relations of attention: it does not matter in which way sequences are laid out.

The same queries and keys lie on other pages, in another order, in chunks, one query at
a time, with the keys in two parts, or where another definition wants them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch

from .attention import paged_case, ragged_case
from .definition import Definition
from .related_sequences import (
    Batch,
    is_paged,
    is_prefill,
    laid_out,
    sequences_of,
)
from .relation import (
    Asked,
    Bound,
    Claim,
    Outputs,
    RelatedCase,
    Relation,
    Subject,
    alike,
)
from .tolerance import Tolerance

_SAME_LOGITS = (
    "float32 sums in another order: logits of up to 30 are off by some 2^-24·30, 2e-6, "
    "and so are the weights, of their value"
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
# one sequence each, around a page and a block of 64 keys
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
    """Return the relations of a paged or ragged attention's definition.

    Pages matter to paged ones alone, several queries in a sequence to prefill alone. A
    prefill is held against the decode of its geometry, pages of many tokens against
    pages of one, where the file has such a definition.
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
    """Accept the definition of a stage whose axes are the same but for changes."""
    axes = {**definition.axes, **changes}

    def accepts(other: Definition) -> bool:
        return other.axes == axes and is_prefill(other) == prefill

    return accepts


def _asked(run: Asked, subject: Subject, batch: Batch, *key: str) -> Outputs:
    """Return what a `run()` gives for sequences, on pages that the key shuffles."""
    inputs = subject.inputs
    scale = inputs["sm_scale"]
    return run(laid_out(run.definition, batch, scale, subject.trial.case.name, *key))


def _batch(subject: Subject) -> Batch:
    return sequences_of(subject.definition, subject.inputs)


def _pages_permuted(subject: Subject) -> Iterator[Claim]:
    """Take the same tokens on other pages, beside other stale values."""
    actual = _asked(subject.run, subject, _batch(subject), "permuted")
    yield from alike(subject.whole, actual, ALIKE)


def _page_size_1(subject: Subject) -> Iterator[Claim]:
    """Ask the definition whose pages hold one token for the same sequences."""
    actual = _asked(subject.other(), subject, _batch(subject), "page size 1")
    yield from alike(subject.whole, actual, ALIKE)


def _batch_reversed(subject: Subject) -> Iterator[Claim]:
    batch = _batch(subject)
    actual = _asked(subject.run, subject, batch[::-1], "reversed")
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
        _asked(subject.run, subject, some, "in two")
        for some in (batch[:cut], batch[cut:])
    ]
    yield from alike(subject.whole, _joined(parts), ALIKE)


def _in_chunks(subject: Subject) -> Iterator[Claim]:
    """Ask for the first half of each sequence's queries, then for the others.

    The second call sees the keys of the first one as well, as a cache keeps them.
    """
    batch = _batch(subject)
    cuts = [(one.q_len + 1) // 2 for one in batch]
    first = [
        one.part(slice(cut), slice(one.kv_len - one.q_len + cut))
        for one, cut in zip(batch, cuts, strict=True)
    ]
    # of one query nothing is left for the second call
    later = [
        one.part(slice(cut, None), slice(None))
        for one, cut in zip(batch, cuts, strict=True)
        if one.q_len > cut
    ]
    answers = iter(_by_sequence(_asked(subject.run, subject, later, "later"), later))
    parts = []
    early = _by_sequence(_asked(subject.run, subject, first, "first"), first)
    for one, cut, own in zip(batch, cuts, early, strict=True):
        parts += [own, next(answers)] if one.q_len > cut else [own]
    yield from alike(subject.whole, _joined(parts), ALIKE)


def _some_queries(batch: Batch) -> tuple[Batch, torch.Tensor]:
    """Return some queries as sequences of their own, with the keys that they see.

    Of each sequence the first one, one inside, and the last one; and which rows of the
    batch's outputs these are: int64 [queries].
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


def _of_one_query(subject: Subject, run: Asked) -> Iterator[Claim]:
    singles, rows = _some_queries(_batch(subject))
    expected = {name: value[rows] for name, value in subject.whole.items()}
    yield from alike(expected, _asked(run, subject, singles, "one query"), ALIKE)


def _by_one_query(subject: Subject) -> Iterator[Claim]:
    """Ask for queries as sequences of their own: a prefill of one is a decode."""
    yield from _of_one_query(subject, subject.run)


def _is_decode(subject: Subject) -> Iterator[Claim]:
    """Ask the decode of the same geometry: prefill's last row is one of its answers."""
    yield from _of_one_query(subject, subject.other())


def _kv_in_two(subject: Subject) -> Iterator[Claim]:
    """Ask for one query a sequence on either part of its keys, and merge by the LSE.

    Of prefill it is the last query. A single key can't be cut.
    """
    batch = _batch(subject)
    last = _by_sequence(subject.whole, batch)
    rows = [i for i, one in enumerate(batch) if one.kv_len > 1]
    expected = _joined([{n: v[-1:] for n, v in last[i].items()} for i in rows])
    one_query = [batch[i].part(slice(-1, None), slice(None)) for i in rows]
    # not in the middle: a cut that is one page's or one part's twice would hide much
    cuts = [max(1, one.kv_len // 3) for one in one_query]
    halves = [
        _asked(subject.run, subject, part, "in two")
        for part in (
            [
                o.part(slice(None), slice(c))
                for o, c in zip(one_query, cuts, strict=True)
            ],
            [
                o.part(slice(None), slice(c, None))
                for o, c in zip(one_query, cuts, strict=True)
            ],
        )
    ]
    yield from alike(expected, merged(*halves), MERGED)


def merged(first: Outputs, second: Outputs) -> Outputs:
    """Return attention over two sets of keys from that over each: by base-2 LSE."""
    lse = torch.stack([first["lse"].double(), second["lse"].double()])
    total = torch.logsumexp(lse * math.log(2.0), dim=0) / math.log(2.0)
    weights = torch.exp2(lse - total)[..., None]
    output = weights[0] * first["output"].double() + weights[1] * second["output"]
    return {"output": output, "lse": total}
