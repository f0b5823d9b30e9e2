"""Relations of sums over ranks: ranks are alike, and a sum may lie on any of them."""

from __future__ import annotations

from collections.abc import Iterator

from generator.ops.rank_relations import SUMS_REORDERED, columns_moved
from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_ALIKE = {"output": SUMS_REORDERED, "residual_out": SUMS_REORDERED}


def comm_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a sum over ranks with residual and norm."""
    cases = [RelatedCase("seven-rows", "small", {"num_tokens": 7})]
    return [
        reordered("ranks-reversed", ["world_size"], _ALIKE, cases),
        reordered("rows-and-columns-reversed", _ROWS, _ALIKE, cases),
        in_two_parts("rows-in-two", "num_tokens", _ALIKE, cases),
        columns_moved("hidden_states", cases),
        Relation("residual-is-one-more-rank", _swapped, cases),
    ]


_ROWS = ("num_tokens", "hidden_size")


def _swapped(subject: RelatedCalls) -> Iterator[Claim]:
    """Exchange the residual and the first rank's part: it is added once, as that is."""
    parts = subject.inputs["hidden_states"].clone()
    residual = parts[0].clone()
    parts[0] = subject.inputs["residual"]
    other = {**subject.inputs, "hidden_states": parts, "residual": residual}
    yield from alike(subject.whole, subject.run(other), _ALIKE)
