"""Relations of rotary embeddings: rotations add up, dot products see their difference.

They need a cache that rotates by position · angle. The op's own inputs have an unrelated
rotation for every position. Heads that are normalised first keep no length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from generator.ops.row_relations import reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Inputs
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_ROUNDED_ALIKE = Bound(
    Tolerance(rtol=8e-3, atol=4e-6, nmse=1e-6),
    "the same float32 operations, with an eps of 1e-6 beside mean squares of 1 where "
    "heads are normalised: both sides round once, to neighbours at most: 2^-7",
)
_TWICE = Bound(
    Tolerance(rtol=8e-3, atol=1.6e-2, nmse=1e-5),
    "one turn or two, with a rounding to bfloat16 after each: half an ulp is 2^-8, of "
    "values up to 3.5 1.4e-2; three roundings of 2.4e-6 (2^-8/sqrt(3)/1.44, squared) "
    "are 7e-6 of the power",
)
_DOTS = Bound(
    Tolerance(rtol=0.0, atol=0.25, nmse=2e-5),
    "queries and keys are rounded to bfloat16 by 1.6e-3 of a value (2^-8/sqrt(3)/1.44): "
    "dot products of 128 such values, 11 in size, are off by 0.025 on either side, "
    "which differ in sign; 0.25 are 7 deviations of both",
)
_HALF = Bound(EXACT, "a cosine of -1 and a sine of 0 only change signs")
# positions, repeated _SHIFT later
_NEAR = (0, 1, 5, 17, 40)
_SHIFT = 23
_POSITIONS = 128


def rope_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a rotary embedding."""
    tokens, names = 2 * len(_NEAR), definition.interface.inputs
    axes = {"num_tokens": tokens}
    if "num_qo_heads" not in definition.axes:
        axes |= {"num_qo_heads": 6, "num_kv_heads": 2, "max_seq_len": _POSITIONS}
    places = tuple(Stream("rope tokens").permutation(tokens).tolist())
    turning = [
        RelatedCase("turning", "small", axes, {"places": places}, _turning_inputs)
    ]
    both = dict.fromkeys(("q_out", "k_out"), _ROUNDED_ALIKE)
    relations = [
        reordered("tokens-reversed", ["num_tokens"], both, turning),
        Relation("relative-positions", _relative, turning),
    ]
    if "q_weight" in names:
        relations.append(Relation("heads-scaled", _heads_scaled, turning))
    # YaRN's factor would come in twice
    elif not definition.constants.get("yarn"):
        relations.append(Relation("turned-twice", _twice, turning))
    if "cos_sin_cache" in names:
        relations.append(Relation("half-turn", _half_turn, turning))
    return relations


def _turning_inputs(definition: Definition, case: Case, stream: Stream) -> Inputs:
    """Return one query and one key at many positions, and a cache of equal steps.

    Shapes and dtypes are the op's. Each dimension's rotation is a rational point of the
    circle, whose powers are computed in float64.
    """
    axes = {**definition.axes, **case.axes}
    names, size = definition.interface.inputs, axes["head_size"]
    positions = torch.tensor([*_NEAR, *(p + _SHIFT for p in _NEAR)])
    positions = positions[list(case.params["places"])]
    inputs: dict[str, Any] = {"positions": positions, "pos_ids": positions.int()}
    if "cos_sin_cache" in names:
        slopes = stream.child("slope").values((axes["rotary_dim"] // 2,), 0.3)
        inputs["cos_sin_cache"] = _even_steps(slopes.double(), axes["max_seq_len"])
    if "num_axes" in axes:
        inputs["positions"] = torch.stack([positions + 5 * a for a in (0, 2, 1)])
    for name, axis in (("q", "num_qo_heads"), ("k", "num_kv_heads")):
        one = stream.child(name).values((1, axes[axis], size), 1.0, torch.bfloat16)
        inputs[name] = one.repeat(axes["num_tokens"], 1, 1)
        weight = 0.5 + stream.child(f"{name}_weight").values((size,), 0.4)
        offset = 1.0 if definition.constants.get("unit_offset") else 0.0
        inputs[f"{name}_weight"] = (weight - offset).bfloat16()
    return {name: inputs[name] for name in names}


def _even_steps(slope: torch.Tensor, rows: int) -> torch.Tensor:
    """Return a cache whose rows turn by multiples of one rotation a dimension."""
    c = (1.0 - slope * slope) / (1.0 + slope * slope)
    s = 2.0 * slope / (1.0 + slope * slope)
    turn = [(torch.ones_like(c), torch.zeros_like(c))]
    for _ in range(rows - 1):
        x, y = turn[-1]
        turn.append((x * c - y * s, x * s + y * c))
    return torch.stack([torch.cat(row) for row in turn]).float()


def _relative(subject: RelatedCalls) -> Iterator[Claim]:
    """Compare all dot products with those _SHIFT positions later."""
    place = torch.tensor(subject.trial.case.params["places"]).argsort()
    q, k = (subject.whole[name].float()[place] for name in ("q_out", "k_out"))
    near, far = slice(len(_NEAR)), slice(len(_NEAR), None)
    dots = [torch.einsum("ihd,jgd->ijhg", q[some], k[some]) for some in (near, far)]
    yield Claim("q_out·k_out", dots[1], dots[0], _DOTS)


def _twice(subject: RelatedCalls) -> Iterator[Claim]:
    """Rotate by a position, then by another, instead of by their sum."""
    inputs = subject.inputs
    name = "positions" if "positions" in inputs else "pos_ids"
    later = torch.full_like(inputs[name], 19)
    once = subject.run({**inputs, name: inputs[name] + later})
    first = {"q": subject.whole["q_out"], "k": subject.whole["k_out"]}
    twice = subject.run({**inputs, **first, name: later})
    yield from alike(once, twice, {"q_out": _TWICE, "k_out": _TWICE})


def _half_turn(subject: RelatedCalls) -> Iterator[Claim]:
    """Rotate by 180 degrees: rotated dimensions change sign, the others stay."""
    inputs = subject.inputs
    cache = inputs["cos_sin_cache"].clone()
    half = cache.shape[1] // 2
    cache[:, :half], cache[:, half:] = -1.0, 0.0
    actual = subject.run({**inputs, "cos_sin_cache": cache})
    whole = {"q_out": inputs["q"], "k_out": inputs["k"]}
    if "q_weight" in inputs:
        whole = subject.run({**inputs, "cos_sin_cache": -cache})
    for name in ("q_out", "k_out"):
        expected = whole[name].clone()
        expected[..., : 2 * half] *= -1.0
        yield Claim(name, actual[name], expected, _HALF)


def _heads_scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Scale the heads by powers of 2, which their norm takes out again."""
    inputs = subject.inputs
    scaled = subject.run({**inputs, "q": 4.0 * inputs["q"], "k": 16.0 * inputs["k"]})
    bounds = dict.fromkeys(("q_out", "k_out"), _ROUNDED_ALIKE)
    yield from alike(subject.whole, scaled, bounds)
