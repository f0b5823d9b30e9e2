"""Relations of activations: numbers are for themselves, f(x) - f(-x) is x."""

from __future__ import annotations

from collections.abc import Iterator

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_SAME = Bound(EXACT, "each number has one result")
_ODD = Bound(
    Tolerance(rtol=8e-3, atol=1e-6, nmse=1.6e-5),
    "both results are rounded to bfloat16, 2^-8 of each at most, and the larger is at most "
    "a fifth more than x",
)


def activation_relations(definition: Definition) -> list[Relation]:
    """Return the relations of an activation without a gate."""
    cases = [RelatedCase("five-rows", "small", {"num_tokens": 5}, {"std": 2.0})]
    same = {"output": _SAME}
    return [
        reordered("rows-reversed", ["num_tokens"], same, cases),
        in_two_parts("rows-in-two", "num_tokens", same, cases),
        reordered("columns-reversed", ["intermediate_size"], same, cases),
        Relation("of-both-signs", _both, cases),
    ]


def _both(subject: RelatedCalls) -> Iterator[Claim]:
    """Ask for the other sign as well: the shares of a number and its negative are 1."""
    x = subject.inputs["x"]
    other = subject.run({"x": -x})["output"].float()
    whole = subject.whole["output"].float()
    yield Claim("output", (whole - other).to(x.dtype), x, _ODD)
