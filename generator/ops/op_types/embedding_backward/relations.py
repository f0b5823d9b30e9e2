"""Relations of a table's gradient: the order of places is free, and it is linear."""

from __future__ import annotations

from collections.abc import Iterator

from generator.ops.gradient_relations import gradient_scaled
from generator.ops.row_relations import reordered
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_ALIKE = Bound(
    Tolerance(rtol=8e-3, atol=1e-5, nmse=1e-6),
    "float32 sums in another order: both sides round nearly the same value once, to "
    "neighbours at most: 2^-7; where terms of 5 cancel, a few 2^-24 of them are left",
)


def table_relations(definition: Definition) -> list[Relation]:
    """Return the relations of the gradient of a table."""
    params = {"tokens": 4}
    cases = [RelatedCase("nine-places", "small", {"num_tokens": 9}, params)]
    bounds = {"grad_weight": _ALIKE}
    return [
        reordered("places-reversed", ["num_tokens"], bounds, cases),
        gradient_scaled(cases),
        Relation("tokens-renamed", _renamed, cases),
    ]


def _renamed(subject: RelatedCalls) -> Iterator[Claim]:
    """Move all tokens by 7: so are the rows of the table."""
    whole = subject.whole["grad_weight"]
    tokens = (subject.inputs["input_ids"] + 7) % len(whole)
    actual = subject.run({**subject.inputs, "input_ids": tokens})["grad_weight"]
    yield Claim("grad_weight", actual, whole.roll(7, 0), _ALIKE)
