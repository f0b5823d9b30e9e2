"""Relations of gated activations: rows are independent, up is a factor, gates saturate."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from generator.testing.definition import Definition
from generator.testing.relation import Bound, Claim, RelatedCase, Relation, Subject
from generator.testing.seeded_inputs import Stream
from generator.testing.tolerance import EXACT, Tolerance

_ALIKE = Bound(
    Tolerance(rtol=8e-3, atol=1e-30, nmse=1e-6),
    "the same float32 operations, maybe of other instructions: both sides round once, "
    "to neighbours at most: 2^-7, and that is rare",
)
_FACTOR = Bound(EXACT, "a factor of -2 changes sign and exponent of the product alone")
_SATURATED = Bound(
    EXACT, "exp(-64) is nothing beside 1 in float32: silu(64) is 64, a power of two"
)
_ODD_PART = Bound(
    Tolerance(rtol=8e-3, atol=1e-30, nmse=2e-5),
    "silu(x) - silu(-x) = x: either value is at most |x| in size and rounded to bfloat16 "
    "by 2^-8 of its own, together by 2^-8 of |x|; 2^-16 is the square",
)


def activation_relations(definition: Definition) -> list[Relation]:
    """Return the relations of silu(gate)·up."""
    cases = [RelatedCase("five-rows", "small", {"num_tokens": 5}, {"std": 2.0})]
    alike = {"output": _ALIKE}
    return [
        reordered("rows-reversed", ["num_tokens"], alike, cases),
        in_two_parts("rows-in-two", "num_tokens", alike, cases),
        Relation("columns-permuted", _permuted, cases),
        Relation("up-times-minus-two", _scaled, cases),
        Relation("gate-saturated", _saturated, cases),
        Relation("gate-negated", _negated, cases),
    ]


def _halves(subject: Subject) -> tuple[torch.Tensor, torch.Tensor]:
    """Return gate and up, bfloat16 [num_tokens, intermediate_size] each."""
    gate, up = subject.inputs["input"].chunk(2, dim=1)
    return gate, up


def _of(subject: Subject, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Return the output for another gate and up."""
    output: torch.Tensor = subject.run({"input": torch.cat((gate, up), dim=1)})[
        "output"
    ]
    return output


def _permuted(subject: Subject) -> Iterator[Claim]:
    """Take the columns of gate and up in another order, the same for both."""
    gate, up = _halves(subject)
    order = Stream("columns").permutation(gate.shape[1])
    actual = _of(subject, gate[:, order], up[:, order])
    yield Claim("output", actual, subject.whole["output"][:, order], _ALIKE)


def _scaled(subject: Subject) -> Iterator[Claim]:
    """Multiply up by -2: the output is multiplied by it."""
    gate, up = _halves(subject)
    actual = _of(subject, gate, -2.0 * up)
    yield Claim("output", actual, -2.0 * subject.whole["output"], _FACTOR)


def _saturated(subject: Subject) -> Iterator[Claim]:
    """Take a gate of 64, which passes the sigmoid as it is."""
    gate, up = _halves(subject)
    actual = _of(subject, torch.full_like(gate, 64.0), up)
    yield Claim("output", actual, 64.0 * up, _SATURATED)


def _negated(subject: Subject) -> Iterator[Claim]:
    """Take gates of the other sign, with an up of 1: the difference is the gate."""
    gate, _ = _halves(subject)
    ones = torch.ones_like(gate)
    plus, minus = _of(subject, gate, ones), _of(subject, -gate, ones)
    yield Claim("output", plus.double() - minus.double(), gate.double(), _ODD_PART)
