"""Relations of activations: rows are independent, up is a factor, gates saturate."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
)

_ALIKE = Bound(
    Tolerance(rtol=8e-3, atol=1e-30, nmse=1e-6),
    "the same float32 operations, maybe of other instructions: both sides round once, "
    "to neighbours at most: 2^-7, and that is rare",
)
_ALIKE_GELU = Bound(
    Tolerance(rtol=8e-3, atol=4e-6, nmse=1e-6),
    "as other activations; for negative gates 1 + erf and 1 + tanh cancel from 1 in "
    "float32: two errors of 2^-24, times half a gate of 5.5 and an up of 4.9 at most, "
    "are 1.6e-6 on either side",
)
_FACTOR = Bound(EXACT, "a factor of -2 changes sign and exponent of the product alone")
_SATURATED = Bound(
    EXACT,
    "exp(-64), and what erf and tanh lack to 1, are nothing beside 1 in float32: the "
    "activation of 64 is 64, a power of two",
)
_ODD_PART = Bound(
    Tolerance(rtol=8e-3, atol=4e-6, nmse=2e-5),
    "act(x) - act(-x) = x: either value is at most |x| in size and rounded to bfloat16 "
    "by 2^-8 of its own, together by 2^-8 of |x|; 2^-16 is the square",
)
_CLIPPED = Bound(EXACT, "beyond the limit a value is the limit")
_SQUARED = Bound(
    EXACT, "2x has the square of x but for the exponent, -x has the same square"
)


def activation_relations(definition: Definition) -> list[Relation]:
    """Return the relations of an activation."""
    cases = [RelatedCase("five-rows", "small", {"num_tokens": 5}, {"std": 2.0})]
    gelu = "gelu" in definition.constants
    alike = {"output": _ALIKE_GELU if gelu else _ALIKE}
    relations = [
        reordered("rows-reversed", ["num_tokens"], alike, cases),
        in_two_parts("rows-in-two", "num_tokens", alike, cases),
    ]
    if "relu2" in definition.constants:
        squares = Relation("doubled-and-negated", _doubled, cases)
        permuted = reordered(
            "columns-permuted", ["intermediate_size"], alike, cases, _shuffled
        )
        return [*relations, permuted, squares]
    relations.append(Relation("columns-permuted", _permuted, cases))
    if {"oai", "limit"} & set(definition.constants):
        relations.append(Relation("beyond-the-limit", _clipped, cases))
    else:
        relations.append(Relation("up-times-minus-two", _scaled, cases))
        relations.append(Relation("gate-saturated", _saturated, cases))
    if "oai" not in definition.constants:
        relations.append(Relation("gate-negated", _negated, cases))
    return relations


def _halves(subject: RelatedCalls) -> tuple[torch.Tensor, torch.Tensor]:
    """Return gate and up, bfloat16 [num_tokens, intermediate_size] each."""
    rows = subject.inputs["input"]
    if "oai" in subject.definition.constants:
        return rows[:, ::2], rows[:, 1::2]
    gate, up = rows.chunk(2, dim=1)
    return gate, up


def _of(subject: RelatedCalls, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Return the output for another gate and up."""
    both = torch.cat((gate, up), dim=1)
    if "oai" in subject.definition.constants:
        both = torch.stack((gate, up), dim=2).flatten(1)
    output: torch.Tensor = subject.run({"input": both})["output"]
    return output


def _shuffled(length: int) -> torch.Tensor:
    return Stream("columns").permutation(length)


def _permuted(subject: RelatedCalls) -> Iterator[Claim]:
    """Take the columns of gate and up in another order, the same for both."""
    gate, up = _halves(subject)
    order = _shuffled(gate.shape[1])
    actual = _of(subject, gate[:, order], up[:, order])
    bound = _ALIKE_GELU if "gelu" in subject.definition.constants else _ALIKE
    yield Claim("output", actual, subject.whole["output"][:, order], bound)


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Multiply up by -2: the output is multiplied by it."""
    gate, up = _halves(subject)
    actual = _of(subject, gate, -2.0 * up)
    yield Claim("output", actual, -2.0 * subject.whole["output"], _FACTOR)


def _saturated(subject: RelatedCalls) -> Iterator[Claim]:
    """Take a gate of 64, which passes the sigmoid as it is."""
    gate, up = _halves(subject)
    actual = _of(subject, torch.full_like(gate, 64.0), up)
    yield Claim("output", actual, 64.0 * up, _SATURATED)


def _negated(subject: RelatedCalls) -> Iterator[Claim]:
    """Take gates of the other sign, with an up of 1: the difference is the gate."""
    gate, _ = _halves(subject)
    ones = torch.ones_like(gate)
    plus, minus = _of(subject, gate, ones), _of(subject, -gate, ones)
    yield Claim("output", plus.double() - minus.double(), gate.double(), _ODD_PART)


def _clipped(subject: RelatedCalls) -> Iterator[Claim]:
    """Take gates and ups of 16 and 1024 in place of those above and below zero."""
    gate, up = _halves(subject)
    near, far = (
        _of(
            subject,
            torch.where(gate > 0, size, gate),
            torch.where(up > 0, size, -size).to(up.dtype),
        )
        for size in (16.0, 1024.0)
    )
    yield Claim("output", far, near, _CLIPPED)


def _doubled(subject: RelatedCalls) -> Iterator[Claim]:
    """Double the rows; negate them: one of x and -x is squared, the other gives 0."""
    rows, whole = subject.inputs["input"], subject.whole["output"]
    doubled = subject.run({"input": 2.0 * rows})["output"]
    yield Claim("output", doubled, 4.0 * whole, _SQUARED)
    negated = subject.run({"input": -rows})["output"]
    squares = subject.run({"input": rows.abs()})["output"]
    yield Claim("output", whole + negated, squares, _SQUARED)
