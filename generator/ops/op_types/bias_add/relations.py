"""Relations of rows and a bias: rows and columns stand for themselves."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_SAME = Bound(EXACT, "each sum is of the same two numbers, rounded once")
_SCALED = Bound(EXACT, "a factor of -2 changes sign and exponent alone")
_ZERO = Bound(EXACT, "a sum with 0 is the other term, a bfloat16 number")


def sum_relations(definition: Definition) -> list[Relation]:
    """Return the relations of input + bias."""
    cases = [RelatedCase("five-rows", "small", {"num_tokens": 5})]
    alike = {"output": _SAME}
    return [
        reordered("rows-reversed", ["num_tokens"], alike, cases),
        in_two_parts("rows-in-two", "num_tokens", alike, cases),
        reordered("columns-reversed", ["features"], alike, cases),
        Relation("terms-scaled-and-zero", _scaled, cases),
        Relation("bias-alone", _alone, cases),
    ]


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Multiply both terms by -2, and add zeros."""
    x, bias = subject.inputs["input"], subject.inputs["bias"]
    actual = subject.run({"input": -2 * x, "bias": -2 * bias})["output"]
    yield Claim("output", actual, -2 * subject.whole["output"], _SCALED)
    plain = subject.run({"input": x, "bias": torch.zeros_like(bias)})["output"]
    yield Claim("output", plain, x, _ZERO)


def _alone(subject: RelatedCalls) -> Iterator[Claim]:
    """Give rows of zeros: each gets the bias."""
    x, bias = subject.inputs["input"], subject.inputs["bias"]
    actual = subject.run({"input": torch.zeros_like(x), "bias": bias})["output"]
    yield Claim("output", actual, bias.expand_as(x), _ZERO)
