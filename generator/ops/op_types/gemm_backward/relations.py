"""Relations of gradients of products: linear, tokens add up, features have no order."""

from __future__ import annotations

from collections.abc import Iterator

from generator.ops.gradient_relations import gradient_scaled
from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_ALIKE = Bound(
    Tolerance(rtol=8e-3, atol=8e-5, nmse=1e-6),
    "float32 sums in another order, 4e-5 of 1 on either side; both round once, to "
    "neighbours at most: 2^-7, and that is rare",
)
_IN_FLOAT32 = Bound(
    Tolerance(rtol=1e-6, atol=2e-5, nmse=2e-11), "float32 sums in another order"
)
_ADDED = Bound(
    Tolerance(rtol=8e-3, atol=1.6e-2, nmse=1e-5),
    "both parts and the whole are rounded to bfloat16, 2^-9 of values up to 4 each",
)


def gradient_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a gradient of a product."""
    cases = [RelatedCase("six-tokens", "small", {"M": 6})]
    (output,) = definition.interface.outputs
    bounds = {output: _IN_FLOAT32 if output == "main_grad" else _ALIKE}
    every = [
        reordered("tokens-reversed", ["M"], bounds, cases),
        reordered("outputs-reversed", ["N"], bounds, cases),
        reordered("inputs-reversed", ["K"], bounds, cases),
        gradient_scaled(cases, "grad_C"),
    ]
    if output == "grad_A":
        return [*every, in_two_parts("tokens-in-two", "M", bounds, cases)]
    return [*every, Relation("tokens-add-up", _added, cases)]


def _added(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the first tokens and the others: the gradients of both add up."""
    parts = [
        subject.run({name: x[rows].contiguous() for name, x in subject.inputs.items()})
        for rows in (slice(4), slice(4, None))
    ]
    ((name, whole),) = subject.whole.items()
    total = (parts[0][name].float() + parts[1][name].float()).to(whole.dtype)
    yield Claim(name, total, whole, _IN_FLOAT32 if name == "main_grad" else _ADDED)
