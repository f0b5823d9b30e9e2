"""Relations of Mamba prefills: split anywhere, sequences apart, linear in x and state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch

from generator.ops.head_relations import head_shards
from generator.ops.row_relations import taken
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.inputs.trial import Inputs
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
        Tolerance(rtol=8e-3, atol=1e-4, nmse=1e-6),
        "float32 sums in another order: the 129 products of an output cancel from about "
        "100, of which an error of sqrt(129)·2^-24 is 7e-5; both sides round once, to "
        "neighbours at most: 2^-7, and that is rare",
    ),
    "new_state": Bound(
        Tolerance(rtol=1e-5, atol=1e-5, nmse=1e-11),
        "float32 sums of a few products a token, of values of 4 at most",
    ),
}
_DOUBLED = Bound(EXACT, "a factor of 2 changes exponents alone")
_LENGTHS = (2, 6, 3)


def prefill_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a prefill."""
    axes = {"total_tokens": 11, "num_seqs": 3, "len_cu_seqlens": 4}
    params = {"lengths": _LENGTHS, "dt_mean": -1.5}
    cases = [RelatedCase("three-sequences", "small", axes, params)]
    return [
        Relation("split-after-some-tokens", _split, cases),
        Relation("sequences-reversed", _reversed, cases),
        Relation("inputs-and-states-doubled", _doubled, cases),
        head_shards(["nheads", "ngroups"], _ALIKE, cases),
    ]


def _of_rows(subject: RelatedCalls, rows: torch.Tensor) -> Inputs:
    """Return the inputs of some tokens, int64, in their order."""
    interface = subject.definition.interface
    return taken(interface, subject.inputs, "total_tokens", lambda _: rows)


def _ends(lengths: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)


def _split(subject: RelatedCalls) -> Iterator[Claim]:
    """Give each sequence's first tokens, then the others from the states behind them."""
    inputs = subject.inputs
    starts, ends = inputs["cu_seqlens"][:-1].long(), inputs["cu_seqlens"][1:].long()
    cuts, state = (starts + ends + 1) // 2, inputs["state"]
    output = torch.empty_like(inputs["x"])
    for first, last in ((starts, cuts), (cuts, ends)):
        rows = torch.cat([torch.arange(a, b) for a, b in zip(first, last, strict=True)])
        chosen = _of_rows(subject, rows)
        piece = {**chosen, "state": state, "cu_seqlens": _ends(last - first)}
        answer = subject.run(piece)
        output[rows], state = answer["output"], answer["new_state"]
    yield from alike(subject.whole, {"output": output, "new_state": state}, _ALIKE)


def _reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the sequences in another order."""
    inputs = subject.inputs
    ends = inputs["cu_seqlens"].tolist()
    spans = [torch.arange(a, b) for a, b in pairwise(ends)]
    rows = torch.cat(spans[::-1])
    chosen = _of_rows(subject, rows)
    state = inputs["state"].flip(0)
    lengths = inputs["cu_seqlens"].diff().flip(0)
    answer = subject.run({**chosen, "state": state, "cu_seqlens": _ends(lengths)})
    whole = subject.whole
    expected = {
        "output": whole["output"][rows],
        "new_state": whole["new_state"].flip(0),
    }
    yield from alike(expected, answer, _ALIKE)


def _doubled(subject: RelatedCalls) -> Iterator[Claim]:
    """Double x and the states: outputs and states are doubled."""
    inputs = subject.inputs
    answer = subject.run(
        {**inputs, "x": 2.0 * inputs["x"], "state": 2.0 * inputs["state"]}
    )
    for name, whole in subject.whole.items():
        yield Claim(name, answer[name], 2.0 * whole, _DOUBLED)
