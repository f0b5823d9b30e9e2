"""Relations of rotations that are stored: tokens and slots stand for themselves."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import reordered, select
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.inputs.trial import Inputs
from kernel_judge.relation import (
    Bound,
    Claim,
    Outputs,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_TOKENS = ("q", "k", "v", "positions", "slot_mapping")
_CACHES = ("k_cache", "v_cache")
_ROUNDED_ALIKE = Bound(
    Tolerance(rtol=8e-3, atol=4e-6, nmse=1e-6),
    "the same float32 operations, with an eps of 1e-5 at most beside mean squares of 1 "
    "where heads are normalised: both sides round once, to neighbours at most: 2^-7",
)
_BOUNDS = {
    "q_out": _ROUNDED_ALIKE,
    "k_cache_out": _ROUNDED_ALIKE,
    "v_cache_out": Bound(EXACT, "bits are copied"),
}


def store_relations(definition: Definition) -> list[Relation]:
    """Return the relations of both kinds."""
    axes = {"num_tokens": 7, "max_seq_len": 40, "num_slots": 20}
    cases = [RelatedCase("seven-tokens", "small", axes)]
    return [
        reordered("tokens-reversed", ["num_tokens"], _BOUNDS, cases),
        Relation("in-two-calls", _in_two, cases),
        Relation("slots-renamed", _renamed, cases),
        Relation("heads-scaled", _scaled, cases),
    ]


def _rows(inputs: Inputs, rows: slice) -> Inputs:
    return {
        name: value[rows].contiguous() if name in _TOKENS else value
        for name, value in inputs.items()
    }


def _after(outputs: Outputs) -> Inputs:
    """Return the caches that a call returned, by the names of the inputs."""
    return {name: outputs[f"{name}_out"] for name in _CACHES}


def _in_two(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the first tokens, then the others with what that stored."""
    first = subject.run(_rows(subject.inputs, slice(3)))
    later = {**_rows(subject.inputs, slice(3, None)), **_after(first)}
    second = subject.run(later)
    both = torch.cat([first["q_out"], second["q_out"]])
    yield from alike(subject.whole, {**second, "q_out": both}, _BOUNDS)


def _renamed(subject: RelatedCalls) -> Iterator[Claim]:
    """Turn the order of the slots round, in the caches and in the mapping."""
    inputs = subject.inputs
    count = len(inputs["k_cache"])
    order = torch.arange(count - 1, -1, -1)
    turned = {name: select(inputs[name], 0, order) for name in _CACHES}
    slots = count - 1 - inputs["slot_mapping"]
    actual = subject.run({**inputs, **turned, "slot_mapping": slots})
    expected = {
        name: value if name == "q_out" else select(value, 0, order)
        for name, value in subject.whole.items()
    }
    yield from alike(expected, actual, _BOUNDS)


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Give heads four times as large: a norm takes that away, a rotation does not."""
    inputs, whole = subject.inputs, dict(subject.whole)
    larger = {name: inputs[name] * 4 for name in ("q", "k")}
    if "q_weight" not in inputs:
        slots = inputs["slot_mapping"]
        keys = whole["k_cache_out"].clone()
        keys[slots] = keys[slots] * 4
        whole |= {"q_out": whole["q_out"] * 4, "k_cache_out": keys}
    yield from alike(whole, subject.run({**inputs, **larger}), _BOUNDS)
