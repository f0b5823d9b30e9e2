"""Relations of a sum: terms change places, rows and columns stand for themselves."""

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
    """Return the relations of hidden_states + residual."""
    cases = [RelatedCase("five-rows", "small", {"num_tokens": 5})]
    alike = {"output": _SAME}
    return [
        reordered("rows-reversed", ["num_tokens"], alike, cases),
        in_two_parts("rows-in-two", "num_tokens", alike, cases),
        reordered("columns-reversed", ["hidden_size"], alike, cases),
        Relation("terms-exchanged", _exchanged, cases),
        Relation("terms-scaled-and-zero", _scaled, cases),
    ]


def _exchanged(subject: RelatedCalls) -> Iterator[Claim]:
    """Add the residual to the hidden states."""
    x, residual = subject.inputs["hidden_states"], subject.inputs["residual"]
    actual = subject.run({"hidden_states": residual, "residual": x})["output"]
    yield Claim("output", actual, subject.whole["output"], _SAME)


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Multiply both terms by -2, and add zeros."""
    x, residual = subject.inputs["hidden_states"], subject.inputs["residual"]
    actual = subject.run({"hidden_states": -2 * x, "residual": -2 * residual})["output"]
    yield Claim("output", actual, -2 * subject.whole["output"], _SCALED)
    alone = subject.run({"hidden_states": x, "residual": torch.zeros_like(x)})["output"]
    yield Claim("output", alone, x, _ZERO)
