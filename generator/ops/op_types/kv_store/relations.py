"""Relations of stores: the order of rows is free, and a store may come in two."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import reordered, select
from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.definition import Definition
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

_SAME = Bound(EXACT, "the same numbers are stored, rounded in the same way if at all")


def store_relations(definition: Definition) -> list[Relation]:
    """Return the relations of stores and of copies."""
    names = definition.interface.inputs
    axes = {"num_tokens": 11, "num_slots": 32}
    if "page_size" in definition.axes:
        axes = {"num_tokens": 11, "num_pages": 3}
    if "sources" in names:
        axes = {"num_copies": 7, "num_pages": 24}
    cases = [RelatedCase("eleven-rows", "small", axes)]
    rows = "num_copies" if "sources" in names else "num_tokens"
    bounds = dict.fromkeys(definition.interface.outputs, _SAME)
    every = [
        reordered("rows-reversed", [rows], bounds, cases),
        Relation("in-two-stores", _in_two, cases),
        Relation("twice-is-once", _twice, cases),
    ]
    if "num_slots" in axes:
        every.append(Relation("slots-renamed", _renamed, cases))
    return every


def _bounds(subject: RelatedCalls) -> dict[str, Bound]:
    return dict.fromkeys(subject.definition.interface.outputs, _SAME)


def _after(outputs: Outputs) -> Inputs:
    """Return the caches that a store returned, by the names of the inputs."""
    return {name.removesuffix("_out"): value for name, value in outputs.items()}


def _rows(inputs: Inputs, rows: slice) -> Inputs:
    names = {"k", "v", "latent", "rope", "slot_mapping", "sources", "targets"}
    return {
        name: value[rows].contiguous() if name in names else value
        for name, value in inputs.items()
    }


def _in_two(subject: RelatedCalls) -> Iterator[Claim]:
    """Store the first rows, then the others in what that gave."""
    first = subject.run(_rows(subject.inputs, slice(4)))
    later = {**_rows(subject.inputs, slice(4, None)), **_after(first)}
    yield from alike(subject.whole, subject.run(later), _bounds(subject))


def _twice(subject: RelatedCalls) -> Iterator[Claim]:
    """Store the same rows in what the store gave."""
    again = subject.run({**subject.inputs, **_after(subject.whole)})
    yield from alike(subject.whole, again, _bounds(subject))


def _renamed(subject: RelatedCalls) -> Iterator[Claim]:
    """Turn the order of the slots round, in the caches and in the mapping."""
    inputs, bounds = subject.inputs, _bounds(subject)
    caches = [name.removesuffix("_out") for name in bounds]
    count = len(inputs[caches[0]])
    order = torch.arange(count - 1, -1, -1)
    turned = {name: select(inputs[name], 0, order) for name in caches}
    slots = count - 1 - inputs["slot_mapping"]
    actual = subject.run({**inputs, **turned, "slot_mapping": slots})
    expected = {n: select(value, 0, order) for n, value in subject.whole.items()}
    yield from alike(expected, actual, bounds)
