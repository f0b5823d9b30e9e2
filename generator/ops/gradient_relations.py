"""Relations that the gradients of every op have: they are linear in what they are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_FACTOR = Bound(EXACT, "a factor of -2 changes sign and exponent of all terms alone")


def gradient_scaled(
    cases: Sequence[RelatedCase], gradient: str = "grad_output"
) -> Relation:
    """Return the relation that -2 times a gradient gives -2 times every output."""

    def claims(subject: RelatedCalls) -> Iterator[Claim]:
        inputs = subject.inputs
        actual = subject.run({**inputs, gradient: -2.0 * inputs[gradient]})
        expected = {name: -2.0 * value for name, value in subject.whole.items()}
        yield from alike(expected, actual, dict.fromkeys(expected, _FACTOR))

    return Relation("gradient-scaled", claims, cases)
