"""Relations of Kimi delta attention: sequences apart, split anywhere, linear in values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import torch

from generator.ops.head_relations import head_shards
from generator.ops.row_relations import in_two_parts, reordered, taken
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

_SAME_STEPS = (
    "a token rounds a state of 3 four times, by 2^-24 each, 7e-7; keys of length 1 and "
    "gates below 1 never enlarge an error, and 17 tokens' errors, which differ in sign, "
    "add up to sqrt(17)·7e-7, 3e-6"
)
_ALIKE = {
    "output": Bound(
        Tolerance(rtol=8e-3, atol=2e-6, nmse=1e-6),
        f"{_SAME_STEPS}, of which 1/sqrt(128) reaches an output; both sides round nearly "
        "the same value once, to neighbours at most: 2^-7, and that is rare",
    ),
    "new_state": Bound(Tolerance(rtol=1e-6, atol=3e-6, nmse=1e-11), _SAME_STEPS),
}
_DOUBLED = Bound(EXACT, "a factor of 2 changes exponents alone")
_LENGTHS = (5, 17, 1, 8)


def kda_relations(definition: Definition) -> list[Relation]:
    """Return the relations of the stage; the peer is the decode of the same heads."""
    if "cu_seqlens" not in definition.interface.inputs:
        cases = [RelatedCase("three-rows", "small", {"batch_size": 3})]
        return [
            reordered("batch-reversed", ["batch_size"], _ALIKE, cases),
            in_two_parts("batch-in-two", "batch_size", _ALIKE, cases),
            reordered("heads-reversed", ["num_heads"], _ALIKE, cases),
            Relation("values-and-states-doubled", _doubled, cases),
            Relation("vectors-lengthened", _lengthened, cases),
            head_shards(["num_heads"], _ALIKE, cases),
        ]
    axes = {"total_tokens": sum(_LENGTHS), "num_seqs": 4, "len_cu_seqlens": 5}
    cases = [RelatedCase("four-sequences", "small", axes, {"lengths": _LENGTHS})]
    return [
        Relation("batch-reversed", _reversed, cases),
        Relation("prefill-in-chunks", _split, cases),
        Relation("prefill-is-decode", _is_decode, cases, _decode_of(definition)),
        Relation("values-and-states-doubled", _doubled, cases),
        head_shards(["num_heads"], _ALIKE, cases),
    ]


def _decode_of(definition: Definition) -> Callable[[Definition], bool]:
    """Return a filter for the decode definition with the same heads."""
    sizes = {name: definition.axes[name] for name in ("num_heads", "head_dim")}
    return lambda other: (
        "cu_seqlens" not in other.interface.inputs
        and all(other.axes.get(name) == size for name, size in sizes.items())
    )


def _doubled(subject: RelatedCalls) -> Iterator[Claim]:
    """Double values and states: outputs and states are doubled."""
    inputs = subject.inputs
    twice = {name: 2.0 * inputs[name] for name in ("v", "state")}
    answer = subject.run({**inputs, **twice})
    for name, whole in subject.whole.items():
        yield Claim(name, answer[name], 2.0 * whole, _DOUBLED)


_LONGER = Bound(
    Tolerance(rtol=8e-3, atol=2e-6, nmse=1e-6),
    "sums of squares of 128 become 16 and 256 times as large, of which 1e-6 is 1e-8",
)


def _lengthened(subject: RelatedCalls) -> Iterator[Claim]:
    """Make queries and keys 4 and 16 times as long: nothing changes."""
    inputs = subject.inputs
    longer = {"q": 4.0 * inputs["q"], "k": 16.0 * inputs["k"]}
    answer = subject.run({**inputs, **longer})
    yield from alike(subject.whole, answer, {"output": _LONGER})


def _of_tokens(
    subject: RelatedCalls, tokens: torch.Tensor, lengths: torch.Tensor
) -> Inputs:
    """Return the inputs of some tokens, int64, as sequences of the given lengths."""
    interface = subject.definition.interface
    chosen = taken(interface, subject.inputs, "total_tokens", lambda _: tokens)
    ends = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)
    return {**chosen, "cu_seqlens": ends}


def _places(subject: RelatedCalls) -> list[torch.Tensor]:
    """Return the token indices of each sequence: int64 [length] each."""
    ends = subject.inputs["cu_seqlens"].tolist()
    return [torch.arange(start, end) for start, end in pairwise(ends)]


def _reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the sequences in another order."""
    tokens = torch.cat(_places(subject)[::-1])
    lengths = subject.inputs["cu_seqlens"].diff().flip(0)
    flipped = _of_tokens(subject, tokens, lengths)
    answer = subject.run({**flipped, "state": subject.inputs["state"].flip(0)})
    expected = {
        "output": subject.whole["output"][tokens],
        "new_state": subject.whole["new_state"].flip(0),
    }
    yield from alike(expected, answer, _ALIKE)


def _split(subject: RelatedCalls) -> Iterator[Claim]:
    """Give a third of each sequence, then the others from the states behind it."""
    state = subject.inputs["state"]
    output = torch.empty_like(subject.inputs["v"])
    cuts = [
        (place[: len(place) // 3], place[len(place) // 3 :])
        for place in _places(subject)
    ]
    for parts in zip(*cuts, strict=True):
        tokens = torch.cat(parts)
        lengths = torch.tensor([len(part) for part in parts])
        piece = _of_tokens(subject, tokens, lengths)
        answer = subject.run({**piece, "state": state})
        output[tokens], state = answer["output"], answer["new_state"]
    yield from alike(subject.whole, {"output": output, "new_state": state}, _ALIKE)


def _is_decode(subject: RelatedCalls) -> Iterator[Claim]:
    """Decode token after token; finished sequences leave the batch."""
    decode, inputs = subject.other(), subject.inputs
    places, states = _places(subject), inputs["state"].clone()
    output = torch.empty_like(inputs["v"])
    for step in range(max(len(place) for place in places)):
        rows = torch.tensor([i for i, place in enumerate(places) if len(place) > step])
        tokens = torch.stack([places[i][step] for i in rows.tolist()])
        chosen = _of_tokens(subject, tokens, torch.ones_like(tokens))
        values = {**chosen, "state": states[rows]}
        names = decode.definition.interface.inputs
        answer = decode({name: values[name] for name in names})
        output[tokens], states[rows] = answer["output"], answer["new_state"]
    yield from alike(subject.whole, {"output": output, "new_state": states}, _ALIKE)
