"""Relations of gradients of norms: linear in the gradient, and rows are for themselves."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.gradient_relations import gradient_scaled
from generator.ops.row_relations import reordered
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
)

_ALIKE = Bound(
    Tolerance(rtol=8e-3, atol=2e-5, nmse=1e-6),
    "float32 sums in another order: both sides round nearly the same value once, to "
    "neighbours at most: 2^-7; where terms cancel, 2e-5 of products of 6 are left",
)


def gradient_relations(definition: Definition) -> list[Relation]:
    """Return the relations of the gradients of a norm."""
    cases = [RelatedCase("six-tokens", "small", {"num_tokens": 6})]
    bounds = dict.fromkeys(definition.interface.outputs, _ALIKE)
    return [
        reordered("tokens-reversed", ["num_tokens"], bounds, cases),
        reordered("columns-reversed", ["hidden_size"], bounds, cases),
        gradient_scaled(cases),
        Relation("rows-one-by-one", _one_by_one, cases),
        Relation("parameters-add-up", _added, cases),
    ]


def _one_by_one(subject: RelatedCalls) -> Iterator[Claim]:
    """Ask for each row alone."""
    names = ("grad_output", "hidden_states")
    rows = [
        subject.run(
            {**subject.inputs, **{n: subject.inputs[n][t : t + 1] for n in names}}
        )
        for t in range(len(subject.inputs["grad_output"]))
    ]
    actual = torch.cat([row["grad_input"] for row in rows])
    yield Claim("grad_input", actual, subject.whole["grad_input"], _ALIKE)


def _added(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the batch twice: the parameters' gradients are twice as large."""
    names = ("grad_output", "hidden_states")
    twice = {n: torch.cat([subject.inputs[n]] * 2) for n in names}
    actual = subject.run({**subject.inputs, **twice})
    for name in [n for n in subject.whole if n != "grad_input"]:
        yield Claim(name, actual[name], 2.0 * subject.whole[name], _ALIKE)
