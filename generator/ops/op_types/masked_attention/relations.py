"""Relations of masked attention: sequences and heads are for themselves, keys are a set."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_ALIKE = Bound(
    Tolerance(rtol=8e-3, atol=4e-5, nmse=1e-6),
    "float32 sums in another order; both sides round once, to neighbours at most: 2^-7, "
    "and that is rare",
)
_SCALED = Bound(EXACT, "a factor of -2 changes sign and exponent of all terms alone")


def attention_relations(definition: Definition) -> list[Relation]:
    """Return the relations of attention with a mask or a bias."""
    is_t5 = "relative_bias" in definition.interface.inputs
    axes = {"batch_size": 2, "q_len": 6, "kv_len": 11}
    axes = {"batch_size": 2, "seq_len": 30} if is_t5 else axes
    cases = [RelatedCase("two-sequences", "small", axes, {"q_std": 1.0})]
    bounds = {"output": _ALIKE}
    every = [
        reordered("sequences-reversed", ["batch_size"], bounds, cases),
        in_two_parts("sequences-in-two", "batch_size", bounds, cases),
        reordered("heads-reversed", ["num_heads"], bounds, cases),
        Relation("values-scaled", _scaled, cases),
    ]
    if is_t5:
        return [*every, Relation("text-reversed", _turned, cases)]
    return [
        *every,
        reordered("queries-reversed", ["q_len"], bounds, cases),
        reordered("keys-reversed", ["kv_len"], bounds, cases),
    ]


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Give -2 times the values."""
    inputs = subject.inputs
    actual = subject.run({**inputs, "v": -2.0 * inputs["v"]})["output"]
    yield Claim("output", actual, -2.0 * subject.whole["output"], _SCALED)


def _turned(subject: RelatedCalls) -> Iterator[Claim]:
    """Turn the text round, and the buckets of keys before with those of keys behind."""
    inputs = subject.inputs
    turned = {name: inputs[name].flip(1).contiguous() for name in ("q", "k", "v")}
    before, behind = inputs["relative_bias"].chunk(2)
    # a query's own place is in the first bucket either way
    table = torch.cat((before[:1], behind[1:], before))
    actual = subject.run({**turned, "relative_bias": table})["output"]
    yield Claim("output", torch.flip(actual, (1,)), subject.whole["output"], _ALIKE)
