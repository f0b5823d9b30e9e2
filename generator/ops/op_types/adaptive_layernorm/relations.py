"""Relations of adaptive layer norms: samples and patches are for themselves."""

from __future__ import annotations

from collections.abc import Iterator

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_SAME = Bound(EXACT, "the same operations on the same numbers")
_ORDER = Bound(
    Tolerance(rtol=8e-3, atol=1.2e-5, nmse=1e-6),
    "float32 means in another order, as a GPU takes them of fewer rows too; both sides "
    "round once, to neighbours at most",
)
_SCALED = Bound(
    Tolerance(rtol=8e-3, atol=1.2e-5, nmse=1e-6),
    "a power of two changes what eps adds alone: 1e-6 of a variance of 1",
)


def norm_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a modulated norm."""
    axes = {"batch_size": 3, "seq_len": 4}
    cases = [RelatedCase("three-samples", "small", axes)]
    same, order = {"output": _SAME}, {"output": _ORDER}
    return [
        reordered("samples-reversed", ["batch_size"], same, cases),
        reordered("patches-reversed", ["seq_len"], same, cases),
        in_two_parts("samples-in-two", "batch_size", order, cases),
        reordered("columns-reversed", ["hidden_size"], order, cases),
        Relation("rows-scaled", _scaled, cases),
        Relation("no-gain-and-shift", _plain, cases),
    ]


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Multiply the rows by 16: their directions stay."""
    inputs = subject.inputs
    actual = subject.run({**inputs, "hidden_states": 16.0 * inputs["hidden_states"]})
    yield Claim("output", actual["output"], subject.whole["output"], _SCALED)


def _plain(subject: RelatedCalls) -> Iterator[Claim]:
    """Give a gain of -1: the shift alone is left."""
    inputs = subject.inputs
    gain = -(inputs["gain"] == inputs["gain"]).to(inputs["gain"].dtype)
    actual = subject.run({**inputs, "gain": gain})["output"]
    expected = inputs["shift"][:, None].expand_as(actual)
    yield Claim("output", actual, expected, _SAME)
