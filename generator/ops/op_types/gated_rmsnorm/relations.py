"""Relations of gated norms: independent rows, equivalent columns, gates as factors."""

from __future__ import annotations

from collections.abc import Iterator

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_ALIKE = {
    "output": Bound(
        Tolerance(rtol=8e-3, atol=1e-30, nmse=1e-6),
        "float32 sums in another order: both sides round nearly the same value once, to "
        "neighbours at most: 2^-7, and that is rare",
    )
}
_COLUMNS = ("hidden_size", "num_groups", "group_size")
_SCALED = Bound(
    Tolerance(rtol=8e-3, atol=1e-30, nmse=1e-6),
    "rows of variance 1 that become 4096 times as large in square: an eps of 1e-5 moves "
    "a value by 5e-6 of it, and the two are rounded to neighbours at most",
)
_NEGATED = Bound(EXACT, "of -x all products have the other sign and the same bits")


def gated_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a gated norm."""
    cases = [RelatedCase("seven-rows", "small", {"batch_size": 7})]
    relations = [
        reordered("rows-reversed", ["batch_size"], _ALIKE, cases),
        in_two_parts("rows-in-two", "batch_size", _ALIKE, cases),
        # groups are reversed as well, and each keeps its columns
        reordered("columns-reversed", _COLUMNS, _ALIKE, cases),
        Relation("rows-scaled-and-negated", _scaled, cases),
    ]
    if "num_groups" in definition.axes:
        relations.append(Relation("groups-apart", _apart, cases))
    return relations


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Multiply rows by -1 and by 64, which rounds nothing; eps stays."""
    inputs, whole = subject.inputs, subject.whole["output"]
    x = inputs["hidden_states"]
    negated = subject.run({**inputs, "hidden_states": -x})["output"]
    yield Claim("output", negated, -whole, _NEGATED)
    large = subject.run({**inputs, "hidden_states": 64.0 * x})["output"]
    yield Claim("output", large, whole, _SCALED)


def _apart(subject: RelatedCalls) -> Iterator[Claim]:
    """Close the gates of the first group: the others stay as they are."""
    inputs = subject.inputs
    size = subject.definition.axes["group_size"]
    closed = inputs["gate"].clone()
    closed[:, :size] = 0.0
    actual = subject.run({**inputs, "gate": closed})
    expected = subject.whole["output"].clone()
    expected[:, :size] = 0.0
    yield from alike({"output": expected}, actual, _ALIKE)
