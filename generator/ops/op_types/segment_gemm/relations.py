"""Relations of segments: their order, their cuts and the numbers of weights say nothing."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.op_types.segment_gemm.segments import axes_of
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_ALIKE = {
    "y": Bound(
        Tolerance(rtol=1e-3, atol=4e-5, nmse=1e-7),
        "float32 sums of at most 4096 products of about 1/64 in another order: 4e-5 at "
        "most where they cancel; both sides round once, to neighbours at most: 2^-10",
    )
}
_LENGTHS = (3, 0, 5, 2)


def segment_relations(definition: Definition) -> list[Relation]:
    """Return the relations of products of segments."""
    axes = axes_of(_LENGTHS, 3)
    cases = [RelatedCase("four-segments", "small", axes, {"lengths": _LENGTHS})]
    return [
        Relation("segments-reversed", _reversed, cases),
        Relation("segment-in-two", _in_two, cases),
        Relation("weights-renumbered", _renumbered, cases),
    ]


def _reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Take the segments in reverse: the rows of the output follow."""
    inputs = subject.inputs
    lengths = inputs["seg_indptr"].diff().flip(0)
    zero = torch.zeros(1, dtype=torch.int64)
    places = torch.arange(len(inputs["x"]))
    parts = places.tensor_split(inputs["seg_indptr"][1:-1])
    rows = torch.cat(parts[::-1])
    other = {
        **inputs,
        "x": inputs["x"][rows],
        "seg_indptr": torch.cat((zero, lengths.cumsum(0))),
        "weight_indices": inputs["weight_indices"].flip(0),
    }
    expected = {"y": subject.whole["y"][rows]}
    yield from alike(expected, subject.run(other), _ALIKE)


def _in_two(subject: RelatedCalls) -> Iterator[Claim]:
    """Cut the first segment after its first row: both parts have its weight."""
    inputs = subject.inputs
    bounds, indices = inputs["seg_indptr"], inputs["weight_indices"]
    one = torch.ones(1, dtype=torch.int64)
    other = {
        **inputs,
        "seg_indptr": torch.cat((bounds[:1], one, bounds[1:])),
        "weight_indices": torch.cat((indices[:1], indices)),
    }
    yield from alike(subject.whole, subject.run(other), _ALIKE)


def _renumbered(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the weights other numbers, in the tensor and in the indices."""
    inputs = subject.inputs
    order = Stream("weights").permutation(len(inputs["weights"]))
    other = {
        **inputs,
        "weights": inputs["weights"][order],
        "weight_indices": order.argsort()[inputs["weight_indices"]],
    }
    yield from alike(subject.whole, subject.run(other), _ALIKE)
