"""Relations of sums over ranks: ranks are alike, and a sum may lie on any of them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

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

_REORDERED = Bound(
    Tolerance(rtol=8e-3, atol=1e-6, nmse=1e-6),
    "float32 sums in another order: both sides round nearly the same value once, to "
    "neighbours at most: 2^-7, and that is rare",
)
_ALIKE = {"output": _REORDERED, "residual_out": _REORDERED}
_SAME_SUMS = Bound(EXACT, "adding zeros changes nothing: the sums are the same bits")
_MOVED = {"output": _SAME_SUMS, "residual_out": _SAME_SUMS}


def comm_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a sum over ranks with residual and norm."""
    cases = [RelatedCase("seven-rows", "small", {"num_tokens": 7})]
    return [
        reordered("ranks-reversed", ["world_size"], _ALIKE, cases),
        reordered("rows-and-columns-reversed", _ROWS, _ALIKE, cases),
        in_two_parts("rows-in-two", "num_tokens", _ALIKE, cases),
        Relation("columns-of-a-rank-moved", _moved, cases),
        Relation("residual-is-one-more-rank", _swapped, cases),
    ]


_ROWS = ("num_tokens", "hidden_size")


def _moved(subject: RelatedCalls) -> Iterator[Claim]:
    """Give each column to one rank alone, then all of them to the last rank."""
    parts = subject.inputs["hidden_states"]
    ranks, columns = len(parts), parts.shape[2]
    owner = torch.arange(columns) % ranks
    mine = owner == torch.arange(ranks)[:, None]
    spread = parts.where(mine[:, None], 0.0)
    gathered = torch.zeros_like(parts)
    # each element is the one that is not zero
    gathered[-1] = spread.float().sum(0).to(parts.dtype)
    expected = subject.run({**subject.inputs, "hidden_states": spread})
    actual = subject.run({**subject.inputs, "hidden_states": gathered})
    yield from alike(expected, actual, _MOVED)


def _swapped(subject: RelatedCalls) -> Iterator[Claim]:
    """Exchange the residual and the first rank's part: it is added once, as that is."""
    parts = subject.inputs["hidden_states"].clone()
    residual = parts[0].clone()
    parts[0] = subject.inputs["residual"]
    other = {**subject.inputs, "hidden_states": parts, "residual": residual}
    yield from alike(subject.whole, subject.run(other), _ALIKE)
