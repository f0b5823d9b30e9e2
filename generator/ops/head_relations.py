"""The relation of tensor parallelism: a rank's heads depend on nothing of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from generator.ops.row_relations import Bounds, last_half_twice, taken
from kernel_judge.relation import (
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)


def head_shards(
    axes: Sequence[str], bounds: Bounds, cases: Sequence[RelatedCase]
) -> Relation:
    """Return the relation that shards of heads, one behind the other, are the whole.

    `axes` count heads of several kinds, those of queries and of keys, say: the more
    share the fewer, group by group.
    """

    def claims(subject: RelatedCalls) -> Iterator[Claim]:
        """Give the last rank's heads to both: both have what it had in the whole."""
        definition = subject.definition
        inputs, expected = subject.inputs, subject.whole
        counts = {axis: definition.axes[axis] for axis in axes}
        for axis, order in _orders(counts).items():

            def places(length: int, order: torch.Tensor = order) -> torch.Tensor:
                return order

            inputs = taken(definition.interface, inputs, axis, places)
            expected = taken(definition.interface, expected, axis, places)
        yield from alike(expected, subject.run(inputs), bounds)

    return Relation("head-shards-concatenate", claims, cases)


def _orders(counts: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """Return axis → the heads that stand in each place: int64 [heads].

    A single head is one that every rank has: it stays.
    """
    several = {axis: count for axis, count in counts.items() if count > 1}
    groups = min(several.values(), default=1)
    order = last_half_twice(groups)
    return {
        axis: (
            order[:, None] * (count // groups) + torch.arange(count // groups)
        ).flatten()
        for axis, count in several.items()
    }
