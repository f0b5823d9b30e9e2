"""Relations of merging: order and grouping of the parts do not matter, scale does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from generator.ops.op_types.cascade_merge.states import states_of
from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    Outputs,
    ReferenceCall,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_LSE = Bound(
    Tolerance(rtol=2.0**-21, atol=4e-6, nmse=1e-12),
    "exponentials, their sum and its logarithm, each off by 2^-22",
)
ALIKE = {
    "v_merged": Bound(
        Tolerance(rtol=8e-3, atol=2e-5, nmse=1e-6),
        "float32 sums in another order: both sides round nearly the same value once, to "
        "neighbours at most: 2^-7, and that is rare",
    ),
    "s_merged": _LSE,
}
IN_STEPS = {
    "v_merged": Bound(
        Tolerance(rtol=8e-3, atol=2e-2, nmse=2e-5),
        "the first step's answer is rounded to bfloat16: half an ulp is 2^-8, of values "
        "up to 5 that is 2e-2; three roundings of 5.1e-6 at most, squared",
    ),
    "s_merged": _LSE,
}
_NOTHING = Bound(EXACT, "a part of weight 0 adds nothing, and the other has weight 1")
_ONE_BIT = Bound(
    Tolerance(rtol=2.0**-22, atol=2e-6, nmse=1e-12),
    "two equal parts have twice the sum: 1 more in base 2",
)


def merge_relations(definition: Definition) -> list[Relation]:
    """Return the relations of merging two states, or several."""
    several = "v" in definition.interface.inputs
    axes = {"seq_len": 6} | ({"num_states": 4} if several else {})
    cases = [RelatedCase("six-rows", "small", axes, {"spread": 3.0})]
    relations = [
        reordered("rows-reversed", ["seq_len"], ALIKE, cases),
        reordered("heads-reversed", ["num_heads"], ALIKE, cases),
        reordered("columns-reversed", ["head_dim"], ALIKE, cases),
        in_two_parts("rows-in-two", "seq_len", ALIKE, cases),
        Relation("parts-reversed", _reversed, cases),
        Relation("lse-shifted", _shifted, cases),
        Relation("part-without-keys", _empty, cases),
        Relation("equal-parts-add-a-bit", _equal, cases),
        Relation("merged-in-steps", _in_steps, cases),
    ]
    if several:
        relations.append(Relation("two-states", _two, cases, _merges_two(definition)))
    return relations


def _merges_two(definition: Definition) -> Any:
    def accepts(other: Definition) -> bool:
        return "v_a" in other.interface.inputs and other.axes == definition.axes

    return accepts


def _merged(run: ReferenceCall, v: torch.Tensor, s: torch.Tensor) -> Outputs:
    """Return run()'s outputs for parts; two of them where it merges two."""
    if "v" in run.definition.interface.inputs:
        return run({"v": v.contiguous(), "s": s.contiguous()})
    parts = {"v_a": v[:, 0], "s_a": s[:, 0], "v_b": v[:, 1], "s_b": s[:, 1]}
    return run({name: value.contiguous() for name, value in parts.items()})


def _reversed(subject: RelatedCalls) -> Iterator[Claim]:
    v, s = states_of(subject.inputs)
    actual = _merged(subject.run, v.flip(1), s.flip(1))
    yield from alike(subject.whole, actual, ALIKE)


def _shifted(subject: RelatedCalls) -> Iterator[Claim]:
    """Add 8 to the LSE of every part: that of the whole has 8 more, the values stay."""
    v, s = states_of(subject.inputs)
    actual = _merged(subject.run, v, s + 8.0)
    whole = subject.whole
    expected = {**whole, "s_merged": whole["s_merged"] + 8.0}
    yield from alike(expected, actual, ALIKE)


def _empty(subject: RelatedCalls) -> Iterator[Claim]:
    """Merge one part with parts that have no keys: it stays as it is."""
    v, s = states_of(subject.inputs)
    v, s = v.clone(), s.clone()
    v[:, 1:], s[:, 1:] = 0, -math.inf
    actual = _merged(subject.run, v, s)
    yield Claim("v_merged", actual["v_merged"], v[:, 0], _NOTHING)
    yield Claim("s_merged", actual["s_merged"], s[:, 0], _NOTHING)


def _equal(subject: RelatedCalls) -> Iterator[Claim]:
    """Merge one part with itself: the values stay, the LSE is larger by log2(parts)."""
    v, s = states_of(subject.inputs)
    parts = s.shape[1]
    actual = _merged(subject.run, v[:, :1].expand_as(v), s[:, :1].expand_as(s))
    yield Claim("v_merged", actual["v_merged"], v[:, 0], _NOTHING)
    yield Claim("s_merged", actual["s_merged"], s[:, 0] + math.log2(parts), _ONE_BIT)


def _in_steps(subject: RelatedCalls) -> Iterator[Claim]:
    """Merge three parts from the left, and from the right."""
    v, s = states_of(subject.inputs)
    parts = [(v[:, i], s[:, i]) for i in range(s.shape[1])]
    third = (v[:, 0].flip(0), s[:, 0].flip(0))
    parts = [parts[0], parts[1], third]
    left = _both(subject.run, _both(subject.run, parts[0], parts[1]), parts[2])
    right = _both(subject.run, parts[0], _both(subject.run, parts[1], parts[2]))
    names = ("v_merged", "s_merged")
    yield from alike(
        dict(zip(names, left, strict=True)),
        dict(zip(names, right, strict=True)),
        IN_STEPS,
    )


State = tuple[torch.Tensor, torch.Tensor]


def _both(run: ReferenceCall, first: State, second: State) -> State:
    """Merge two states."""
    v = torch.stack([first[0], second[0]], dim=1)
    merged = _merged(run, v, torch.stack([first[1], second[1]], dim=1))
    return merged["v_merged"], merged["s_merged"]


def _two(subject: RelatedCalls) -> Iterator[Claim]:
    """Merge two of the parts by the definition for two."""
    v, s = states_of(subject.inputs)
    expected = _merged(subject.other(), v[:, :2], s[:, :2])
    yield from alike(expected, _merged(subject.run, v[:, :2], s[:, :2]), ALIKE)
