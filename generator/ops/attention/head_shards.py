"""The relation of tensor parallelism: a rank's heads depend on nothing of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from generator.ops.attention.related import ALIKE
from generator.ops.row_relations import last_half_twice, taken
from generator.testing.definition import Definition
from generator.testing.relation import Claim, RelatedCase, Relation, Subject, alike


def head_shards(cases: Sequence[RelatedCase]) -> Relation:
    """Return the relation that shards of heads, one behind the other, are the whole."""
    return Relation("head-shards-concatenate", _shard_twice, cases)


def _shard_twice(subject: Subject) -> Iterator[Claim]:
    """Give the second rank's heads to both ranks: both have what it had in the whole."""
    definition = subject.definition
    interface, inputs, expected = definition.interface, subject.inputs, subject.whole
    for axis, order in _orders(definition).items():

        def heads(count: int, order: torch.Tensor = order) -> torch.Tensor:
            return order

        inputs = taken(interface, inputs, axis, heads)
        expected = taken(interface, expected, axis, heads)
    yield from alike(expected, subject.run(inputs), ALIKE)


def _orders(definition: Definition) -> dict[str, torch.Tensor]:
    """Return axis → the heads that stand in each place: int64 [heads].

    Of several KV heads the last half, with their query heads; of one KV head, which
    every rank has, the last half of the query heads.
    """
    heads = definition.axes["num_qo_heads"]
    kv_heads = definition.axes.get("num_kv_heads", 1)
    if kv_heads == 1:
        return {"num_qo_heads": last_half_twice(heads)}
    of_keys = last_half_twice(kv_heads)
    group = heads // kv_heads
    of_queries = of_keys[:, None] * group + torch.arange(group)
    return {"num_kv_heads": of_keys, "num_qo_heads": of_queries.flatten()}
