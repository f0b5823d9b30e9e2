"""cascade_merge: attention over parts of the keys, merged by base-2 log-sum-exp.

The weight of part i is 2^(s_i - s), s = log2(Σ 2^s_i). A part without keys has s = -inf.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.cascade_merge.relations import merge_relations
from generator.ops.op_types.cascade_merge.states import states_of
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op


def _merges_in_threads(axes: Mapping[str, int]) -> bool:
    """Return whether FlashInfer's kernel merges several parts in each of some threads.

    A block has 128 threads, which hold 8 values of 16 bits each, or a 32nd of a head.
    """
    of_a_head = axes["head_dim"] // max(8, axes["head_dim"] // 32)
    parts = axes.get("num_states", 2)
    return parts >= axes["seq_len"] and parts > 128 // of_a_head


_LSE = (
    "the exponentials and the logarithm of their sum are off by 2^-22 each, as exp2 and "
    "log2 of float32 are; s itself is up to 200 and rounds by 2^-24 of that"
)
TOLERANCES = (
    Override(
        "v_merged",
        Tolerance(rtol=4e-3, atol=1e-5, nmse=1.6e-5),
        "one rounding to bfloat16: half an ulp is 2^-8 of a value at most, and 2^-16 = "
        "1.53e-5 its square; before it, weights of parts whose s is 16 have 2^-22·16 of "
        "error, 4e-6, of values up to 5 that may cancel",
        source="oracle",
    ),
    Override(
        "v_merged",
        Tolerance(rtol=8e-3, atol=7.9e-3, nmse=1.6e-5),
        "where parts are as many as rows or more, FlashInfer's threads merge a few parts "
        "each and round what they have to bfloat16: at most 2^-7 of a value below 4, in a "
        "mean weighted by the threads' own sums; then both sides round once",
        source="flashinfer",
        where=_merges_in_threads,
    ),
    Override(
        "v_merged",
        Tolerance(rtol=8e-3, atol=2e-5, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        "2^-7 apart; weights differ by 4e-6 on both sides where s is 16",
    ),
    Override("s_merged", Tolerance(rtol=2.0**-21, atol=2e-6, nmse=1e-12), _LSE),
)


def cases(definition: Definition) -> list[Case]:
    """Return parts of like and of unlike weight, and parts without keys."""
    several = "num_states" in definition.interface.inputs.get("v", "")
    shapes: list[tuple[str, str, int, dict[str, Any]]] = [
        ("one-row", "small", 1, {"spread": 1.0}),
        ("odd-rows", "small", 7, {"spread": 3.0}),
        ("equal-parts", "small", 3, {"spread": 0.0}),
        ("far-apart", "small", 5, {"spread": 60.0}),
        ("large-lse", "small", 4, {"spread": 2.0, "mean": 150.0}),
        ("empty-parts", "small", 9, {"spread": 2.0, "empty": 3}),
        ("batch", "medium", 67, {"spread": 3.0}),
        *([("many-parts", "medium", 2, {"spread": 2.0})] if several else []),
        ("long-batch", "large", 2048, {"spread": 3.0}),
    ]
    counts = {"one-row": 2, "odd-rows": 5, "batch": 4, "many-parts": 13}
    limits = past_limits(
        "seq_len", 4_123, {"spread": 3.0}, **({"num_states": 9} if several else {})
    )
    return [
        Case(
            name,
            size,
            {"seq_len": rows}
            | ({"num_states": counts.get(name, 3)} if several else {}),
            params,
        )
        for name, size, rows, params in shapes
    ] + [limits]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return states: v of deviation 1, s around the case's mean by its spread.

    v bfloat16 [seq_len, (num_states,) num_heads, head_dim], s float32 [seq_len,
    (num_states,) num_heads]. In the first `empty` rows one part has no keys, in the next
    `empty` rows none has.
    """
    axes = {**definition.axes, **case.axes}
    rows, parts = axes["seq_len"], axes.get("num_states", 2)
    heads = (axes["num_heads"],)
    v = stream.child("v").values((rows, parts, *heads, axes["head_dim"]), 1.0)
    s = stream.child("s").values((rows, parts, *heads), case.params["spread"])
    s = s + case.params.get("mean", 5.0)
    empty = case.params.get("empty", 0)
    s[:empty, 0] = -math.inf
    s[empty : 2 * empty] = -math.inf
    # attention over no key is 0
    v = torch.where((s == -math.inf)[..., None], 0.0, v).to(torch.bfloat16)
    if "num_states" in axes:
        return {"v": v, "s": s}
    inputs = {"v_a": v[:, 0], "s_a": s[:, 0], "v_b": v[:, 1], "s_b": s[:, 1]}
    return {name: value.contiguous() for name, value in inputs.items()}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return merged values and LSE in float64, by softmax and logsumexp of s·ln 2."""
    v, s = states_of(inputs)
    natural = s.double() * math.log(2.0)
    total = torch.logsumexp(natural, dim=1)
    weights = torch.softmax(natural, dim=1).nan_to_num(0.0)
    merged = torch.einsum("nph,nphd->nhd", weights, v.double())
    return merged, total / math.log(2.0)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries of which some part has keys: bool [seq_len].

    For the others FlashInfer's kernels give not a number, or -5e4.
    """
    _, s = states_of(inputs)
    return (s > -math.inf).flatten(1).any(dim=1)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the one CUDA kernel there is."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call flashinfer.cascade: bfloat16 values, and the base-2 LSE in float32."""
    from flashinfer import cascade

    if "v" in inputs:
        return cascade.merge_states(inputs["v"], inputs["s"])
    return cascade.merge_state(*(inputs[n] for n in ("v_a", "s_a", "v_b", "s_b")))


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=merge_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)
