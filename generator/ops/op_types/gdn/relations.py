"""Relations of gated delta nets: the state carries everything before a token.

One call on several tokens and several calls on parts of them agree, in decode, mtp and
prefill alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import torch

from generator.ops.head_relations import head_shards
from generator.ops.row_relations import in_two_parts, reordered, select, taken
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

BUFFER = "intermediate_states_buffer"
_PER_TOKEN = ("q", "k", "v", "a", "b")
_SAME_STEPS = (
    "a token rounds a state of 3 four times, by 2^-24 each, 7e-7; keys of length 1 and "
    "gates below 1 never enlarge an error, and 70 tokens' errors, which differ in sign, "
    "add up to sqrt(70)·7e-7, 6e-6"
)
_STATE = Bound(Tolerance(rtol=1e-6, atol=6e-6, nmse=1e-11), _SAME_STEPS)
ALIKE = {
    "output": Bound(
        Tolerance(rtol=8e-3, atol=2e-6, nmse=1e-6),
        f"{_SAME_STEPS}, of which a scale of 0.2 leaves 2e-6; both sides round nearly "
        "the same value once, to neighbours at most: 2^-7, and that is rare",
    ),
    "new_state": _STATE,
    BUFFER: _STATE,
    "final_state": Bound(EXACT, "the pool is returned unchanged, not computed"),
}

_HEADS = ("num_q_heads", "num_k_heads", "num_v_heads")


def gdn_relations(definition: Definition) -> list[Relation]:
    """Return the relations of the stage; the peer is the decode of the same geometry."""
    names = definition.interface.inputs
    if "cu_seqlens" in names:
        return _of_prefill(definition)
    if "initial_state_indices" in names:
        return _of_mtp(definition)
    axes = {"batch_size": 3}
    cases = [RelatedCase("three-rows", "small", axes, {"scale": 0.2})]
    stateless = [
        RelatedCase("stateless-rows", "small", axes, {"optional": False}),
    ]
    return [
        reordered("batch-reversed", ["batch_size"], ALIKE, cases),
        in_two_parts("batch-in-two", "batch_size", ALIKE, cases),
        Relation("no-state-is-zeros", _no_state_is_zeros, stateless),
        head_shards(_HEADS, ALIKE, cases),
    ]


def _decode_of(definition: Definition) -> Callable[[Definition], bool]:
    """Return a filter for the decode definition with the same heads."""
    heads = (*_HEADS, "head_size")

    def accepts(other: Definition) -> bool:
        names = other.interface.inputs
        return (
            "cu_seqlens" not in names
            and "state" in names
            and all(other.axes.get(a) == definition.axes.get(a) for a in heads)
            and other.constants == definition.constants
        )

    return accepts


def _of_prefill(definition: Definition) -> list[Relation]:
    def case(name: str, *lengths: int, **params: Any) -> RelatedCase:
        axes = {
            "total_seq_len": sum(lengths),
            "num_seqs": len(lengths),
            "len_cu_seqlens": len(lengths) + 1,
        }
        return RelatedCase(name, "small", axes, {"lengths": lengths, **params})

    cases = [case("prompts", 1, 31, 32, 33, 63, 64, 65, scale=0.2)]
    short = [case("short-prompts", 1, 2, 7)]
    stateless = [case("first-prompts", 3, 5, optional=False)]
    peer = _decode_of(definition)
    return [
        Relation("batch-reversed", _prompts_reversed, cases),
        Relation("prefill-in-chunks", _in_chunks, cases),
        Relation("prefill-by-one-token", _by_one_token, short),
        Relation("prefill-is-decode", _is_decode, short, peer),
        Relation("no-state-is-zeros", _no_state_is_zeros, stateless),
        head_shards(_HEADS, ALIKE, short),
    ]


def _of_mtp(definition: Definition) -> list[Relation]:
    axes = {"batch_size": 3, "seq_len": 4, "pool_size": 6}
    cases = [RelatedCase("four-drafts", "small", axes)]
    bounds = {name: ALIKE[name] for name in ("output", "final_state")}
    return [
        # without the buffer: its pool axis holds the rows of the batch
        reordered("batch-reversed", ["batch_size"], bounds, cases),
        Relation("slots-permuted", _slots_permuted, cases),
        Relation("drafts-in-two", _drafts_in_two, cases),
        head_shards(_HEADS, ALIKE, cases),
        Relation(
            "drafts-are-decode", _drafts_are_decode, cases, _decode_of(definition)
        ),
    ]


def _no_state_is_zeros(subject: RelatedCalls) -> Iterator[Claim]:
    """Pass a state of zeros instead of None."""
    zeros = torch.zeros_like(subject.whole["new_state"])
    actual = subject.run({**subject.inputs, "state": zeros})
    yield from alike(subject.whole, actual, ALIKE)


def _lengths(inputs: Inputs) -> list[int]:
    lengths: list[int] = inputs["cu_seqlens"].diff().tolist()
    return lengths


def _with_tokens(
    inputs: Inputs, tokens: torch.Tensor, lengths: list[int], state: torch.Tensor
) -> Inputs:
    """Return prefill's inputs for some tokens, as sequences of the given lengths."""
    ends = torch.tensor([0, *lengths]).cumsum(0)
    ends = ends.to(inputs["cu_seqlens"].dtype)
    chosen = {name: select(inputs[name], 0, tokens) for name in _PER_TOKEN}
    return {**inputs, **chosen, "cu_seqlens": ends, "state": state}


def _places(inputs: Inputs) -> list[torch.Tensor]:
    """Return the token indices of each sequence: int64 [length] each."""
    bounds = inputs["cu_seqlens"].tolist()
    return [torch.arange(start, end) for start, end in pairwise(bounds)]


def _prompts_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    inputs, whole = subject.inputs, subject.whole
    tokens = torch.cat(_places(inputs)[::-1])
    flipped = _with_tokens(
        inputs, tokens, _lengths(inputs)[::-1], inputs["state"].flip(0)
    )
    expected = {
        "output": whole["output"][tokens],
        "new_state": whole["new_state"].flip(0),
    }
    yield from alike(expected, subject.run(flipped), ALIKE)


def _in_chunks(subject: RelatedCalls) -> Iterator[Claim]:
    """Run a third of each sequence, then the rest from the resulting states."""
    inputs = subject.inputs
    places = _places(inputs)
    # the first part of a sequence of one token is empty
    cuts = [len(place) // 3 for place in places]
    state, outputs = inputs["state"], []
    for part in (
        [place[:cut] for place, cut in zip(places, cuts, strict=True)],
        [place[cut:] for place, cut in zip(places, cuts, strict=True)],
    ):
        tokens = torch.cat(part)
        piece = _with_tokens(inputs, tokens, [len(place) for place in part], state)
        answer = subject.run(piece)
        outputs.append((tokens, answer["output"]))
        state = answer["new_state"]
    output = torch.empty_like(subject.whole["output"])
    for tokens, rows in outputs:
        output[tokens] = rows
    yield from alike(subject.whole, {"output": output, "new_state": state}, ALIKE)


def _by_one_token(subject: RelatedCalls) -> Iterator[Claim]:
    """Run one token of each sequence a call; finished sequences are empty."""
    inputs = subject.inputs
    places = _places(inputs)
    state = inputs["state"]
    output = torch.empty_like(subject.whole["output"])
    for step in range(max(len(place) for place in places)):
        part = [place[step : step + 1] for place in places]
        tokens = torch.cat(part)
        piece = _with_tokens(inputs, tokens, [len(place) for place in part], state)
        answer = subject.run(piece)
        output[tokens], state = answer["output"], answer["new_state"]
    yield from alike(subject.whole, {"output": output, "new_state": state}, ALIKE)


def _decoded(
    subject: RelatedCalls, tokens: Inputs, state: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Call decode on one token a row; return output [rows, heads, values] and states."""
    decode = subject.other()
    inputs = {**subject.inputs, **tokens, "state": state}
    names = decode.definition.interface.inputs
    answer = decode({name: inputs[name] for name in names})
    return answer["output"][:, 0], answer["new_state"]


def _is_decode(subject: RelatedCalls) -> Iterator[Claim]:
    """Decode token after token; finished sequences leave the batch."""
    inputs = subject.inputs
    places = _places(inputs)
    states = inputs["state"].clone()
    output = torch.empty_like(subject.whole["output"])
    for step in range(max(len(place) for place in places)):
        rows = torch.tensor([i for i, place in enumerate(places) if len(place) > step])
        tokens = torch.stack([places[i][step] for i in rows.tolist()])
        one_token = {name: inputs[name][tokens][:, None] for name in _PER_TOKEN}
        output[tokens], states[rows] = _decoded(subject, one_token, states[rows])
    yield from alike(subject.whole, {"output": output, "new_state": states}, ALIKE)


def _slots_permuted(subject: RelatedCalls) -> Iterator[Claim]:
    """Move the states to other slots of the pool."""
    inputs = subject.inputs
    pool = len(inputs["initial_state"])
    # slot s moves to the index of s in `order`
    order = torch.arange(pool).roll(2)
    slots = order.argsort()[inputs["initial_state_indices"].long()]
    permuted = {
        **inputs,
        "initial_state": inputs["initial_state"][order],
        "initial_state_indices": slots.to(inputs["initial_state_indices"].dtype),
    }
    expected = {**subject.whole}
    expected["final_state"] = expected["final_state"][order]
    yield from alike(expected, subject.run(permuted), ALIKE)


def _drafts_in_two(subject: RelatedCalls) -> Iterator[Claim]:
    """Run two drafts, then the others from the states in the buffer."""
    inputs, whole = subject.inputs, subject.whole
    interface = subject.definition.interface
    rows = len(inputs["q"])
    first = subject.run(taken(interface, inputs, "seq_len", lambda n: torch.arange(2)))
    later = taken(interface, inputs, "seq_len", lambda n: torch.arange(2, n))
    pool = later["initial_state"].clone()
    pool[later["initial_state_indices"].long()] = first[BUFFER][:rows, 1]
    second = subject.run({**later, "initial_state": pool})
    parts = {
        name: torch.cat([first[name], second[name]], dim=1)
        for name in ("output", BUFFER)
    }
    yield from alike({name: whole[name] for name in parts}, parts, ALIKE)


def _drafts_are_decode(subject: RelatedCalls) -> Iterator[Claim]:
    """Decode draft after draft from the state in each row's slot."""
    inputs, whole = subject.inputs, subject.whole
    state = inputs["initial_state"][inputs["initial_state_indices"].long()]
    outputs, states = [], []
    for step in range(inputs["q"].shape[1]):
        one_token = {name: inputs[name][:, step : step + 1] for name in _PER_TOKEN}
        output, state = _decoded(subject, one_token, state)
        outputs.append(output)
        states.append(state)
    actual = {"output": torch.stack(outputs, 1), BUFFER: torch.stack(states, 1)}
    expected = {"output": whole["output"], BUFFER: whole[BUFFER][: len(state)]}
    yield from alike(expected, actual, ALIKE)
