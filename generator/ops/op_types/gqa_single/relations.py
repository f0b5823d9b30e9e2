"""Relations of one sequence's attention: parts of its queries and of its keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generator.ops.attention.related import ALIKE, MERGED, head_axes, merged
from generator.ops.attention.variant import variant_of
from generator.ops.head_relations import head_shards
from generator.ops.row_relations import backwards, taken
from kernel_judge.definition import Definition
from kernel_judge.inputs.trial import Inputs
from kernel_judge.relation import (
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)


def single_relations(definition: Definition) -> list[Relation]:
    """Return the relations of prefill or decode; prefill's last query is a decode."""
    several = _has_rows(definition)
    shapes = {"short": ("small", 17, 65), "long": ("medium", 40, 700)}
    cases = [
        RelatedCase(
            name,
            size,
            ({"q_len": q_len} if several else {}) | {"kv_len": kv_len},
            {"q_std": 2.0},
        )
        for name, (size, q_len, kv_len) in shapes.items()
    ]
    all_keys = not several or not variant_of(definition).causal
    relations = [
        Relation("heads-reversed", _heads_reversed, cases),
        head_shards(head_axes(definition), ALIKE, cases[:1]),
    ]
    if all_keys:
        relations.append(Relation("keys-reversed", _keys_reversed, cases))
        relations.append(Relation("kv-in-two-merged", _kv_in_two, cases))
    if several:
        relations.append(Relation("queries-in-two", _queries_in_two, cases))
        decode = _decode_of(definition)
        relations.append(Relation("last-query-is-decode", _is_decode, cases, decode))
    return relations


def _has_rows(definition: Definition) -> bool:
    return "q_len" in (definition.interface.input_specs["q"].shape or ())


def _decode_of(definition: Definition) -> Any:
    def accepts(other: Definition) -> bool:
        return other.axes == definition.axes and not _has_rows(other)

    return accepts


def _heads_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Reverse query heads and KV heads: the heads of a group stay together."""
    interface, inputs = subject.definition.interface, subject.inputs
    expected = subject.whole
    for axis in ("num_qo_heads", "num_kv_heads"):
        inputs = taken(interface, inputs, axis, backwards)
        expected = taken(interface, expected, axis, backwards)
    yield from alike(expected, subject.run(inputs), ALIKE)


def _keys_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    inputs = taken(subject.definition.interface, subject.inputs, "kv_len", backwards)
    yield from alike(subject.whole, subject.run(inputs), ALIKE)


def _keys(inputs: Inputs, part: slice) -> Inputs:
    return {**inputs, **{n: inputs[n][part].contiguous() for n in ("k", "v")}}


def _kv_in_two(subject: RelatedCalls) -> Iterator[Claim]:
    """Attend over two parts of the keys, then merge."""
    # a cut in the middle would make both parts alike and hide errors
    cut = len(subject.inputs["k"]) // 3
    parts = [
        subject.run(_keys(subject.inputs, some))
        for some in (slice(cut), slice(cut, None))
    ]
    yield from alike(subject.whole, merged(*parts), MERGED)


def _queries_in_two(subject: RelatedCalls) -> Iterator[Claim]:
    """Call run() on the first queries, with the keys that they see, then on the rest."""
    inputs = subject.inputs
    q_len, kv_len = len(inputs["q"]), len(inputs["k"])
    cut = (q_len + 1) // 2
    causal = variant_of(subject.definition).causal
    seen = slice(kv_len - q_len + cut if causal else None)
    first = subject.run({**_keys(inputs, seen), "q": inputs["q"][:cut].contiguous()})
    rest = subject.run({**inputs, "q": inputs["q"][cut:].contiguous()})
    for part, actual in ((slice(cut), first), (slice(cut, None), rest)):
        expected = {name: value[part] for name, value in subject.whole.items()}
        yield from alike(expected, actual, ALIKE)


def _is_decode(subject: RelatedCalls) -> Iterator[Claim]:
    """Call the decode of the same geometry on the last query."""
    last = {**subject.inputs, "q": subject.inputs["q"][-1].contiguous()}
    expected = {name: value[-1] for name, value in subject.whole.items()}
    yield from alike(expected, subject.other()(last), ALIKE)
