"""Relations of a state space step: rows are independent, slots are arbitrary."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.head_relations import head_shards
from generator.ops.row_relations import reordered, taken
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_CANCELLING = (
    "float32 sums in another order: the 129 products of an output cancel from about "
    "100, of which an error of sqrt(129)·2^-24 is 7e-5; both sides round once, to "
    "neighbours at most: 2^-7, and that is rare"
)
ALIKE = {
    "output": Bound(Tolerance(rtol=8e-3, atol=1e-4, nmse=1e-6), _CANCELLING),
    "new_state": Bound(
        Tolerance(rtol=8e-3, atol=1e-5, nmse=1e-6),
        "the same float32 operations on each element: two products cancel from about 20, "
        "of which four roundings of 2^-24 are 5e-6; both sides round once: 2^-7 at most",
    ),
}


def mamba_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a step, on four rows of which one is padding."""
    axes = {"batch_size": 4, "state_cache_size": 6}
    params = {"padding": (2,), "dt_mean": -0.5}
    cases = [RelatedCase("four-rows", "small", axes, params)]
    return [
        reordered("batch-reversed", ["batch_size"], ALIKE, cases),
        Relation("batch-in-two", _in_two, cases),
        Relation("slots-permuted", _slots_permuted, cases),
        head_shards(["nheads", "ngroups"], ALIKE, cases),
    ]


def _in_two(subject: RelatedCalls) -> Iterator[Claim]:
    """Run three rows, then the others on the resulting pool."""
    inputs, interface = subject.inputs, subject.definition.interface
    parts = []
    for order in (lambda n: torch.arange(3), lambda n: torch.arange(3, n)):
        permuted = taken(interface, inputs, "batch_size", order)
        answer = subject.run(permuted)
        inputs = {**inputs, "state": answer["new_state"]}
        parts.append(answer["output"])
    actual = {"output": torch.cat(parts), "new_state": inputs["state"]}
    yield from alike(subject.whole, actual, ALIKE)


def _slots_permuted(subject: RelatedCalls) -> Iterator[Claim]:
    """Move the states to other slots of the pool; padding stays padding."""
    inputs = subject.inputs
    order = torch.arange(len(inputs["state"])).roll(2)
    slots = inputs["state_batch_indices"]
    moved = order.argsort()[slots.long()].to(slots.dtype)
    permuted = {
        **inputs,
        "state": inputs["state"][order],
        "state_batch_indices": torch.where(slots < 0, slots, moved),
    }
    expected = {**subject.whole}
    expected["new_state"] = expected["new_state"][order]
    yield from alike(expected, subject.run(permuted), ALIKE)
