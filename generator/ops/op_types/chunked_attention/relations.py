"""Relations of attention within chunks: other chunks have no part in the answer."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.attention.cases import ragged_case
from generator.ops.attention.oracle import oracle_ragged
from generator.ops.attention.related import ALIKE, MERGED, batch_of, run_on
from generator.ops.attention.relations import attention_relations
from generator.ops.attention.sequences import Batch
from generator.ops.op_types.chunked_attention.chunks import chunk_of
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)


def chunked_relations(definition: Definition) -> list[Relation]:
    """Return those of causal attention, on one chunk, and those between chunks."""
    chunk = chunk_of(definition)
    case = ragged_case("two-chunks", "small", [5, 2], [chunk + 3, chunk + 1])
    beyond = [RelatedCase(case.name, case.size, case.axes, case.params)]
    causal = attention_relations(definition)
    return [
        *causal,
        Relation("chunk-of-all-is-causal", _is_causal, causal[0].cases),
        Relation("cut-at-chunks", _cut, beyond),
        Relation("chunks-before-are-not-seen", _not_seen, beyond),
    ]


def _is_causal(subject: RelatedCalls) -> Iterator[Claim]:
    """Compute causal attention over sequences that one chunk holds, in float64."""
    output, lse = oracle_ragged(subject.inputs)
    expected = {"output": output, "lse": lse}
    yield from alike(expected, subject.whole, MERGED)


def _cut(subject: RelatedCalls) -> Iterator[Claim]:
    """Call run() on each chunk's queries and keys as a sequence of its own."""
    chunk = chunk_of(subject.definition)
    pieces: Batch = []
    for one in batch_of(subject):
        # the queries of the second chunk come last
        late = one.kv_len - chunk
        early = one.q_len - late
        pieces.append(one.part(slice(early), slice(chunk)))
        pieces.append(one.part(slice(early, None), slice(chunk, None)))
    queried = [piece for piece in pieces if piece.q_len]
    yield from alike(subject.whole, run_on(subject.run, subject, queried, "cut"), ALIKE)


def _not_seen(subject: RelatedCalls) -> Iterator[Claim]:
    """Change the keys of the first chunk: the queries of the second stay as they are."""
    chunk, batch = chunk_of(subject.definition), batch_of(subject)
    changed = [
        type(one)(
            one.queries,
            {n: torch.cat([-v[:chunk], v[chunk:]]) for n, v in one.tokens.items()},
        )
        for one in batch
    ]
    late = torch.cat([_in_second(one.q_len, one.kv_len - chunk) for one in batch])
    actual = run_on(subject.run, subject, changed, "changed")
    yield from alike(
        {name: value[late] for name, value in subject.whole.items()},
        {name: value[late] for name, value in actual.items()},
        ALIKE,
    )


def _in_second(queries: int, late: int) -> torch.Tensor:
    """Return which queries of a sequence are its last `late`: bool [queries]."""
    return torch.arange(queries) >= queries - late
