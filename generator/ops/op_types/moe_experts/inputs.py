"""Inputs of experts, scaled so that outputs are about 1."""

from __future__ import annotations

import math
from typing import Any

import torch

from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.lazy_weights import Tiled, base_length
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream

# root mean square of uniform e2m1 codes, and of what is between the products
_E2M1_RMS, _INNER_RMS = math.sqrt(68.5 / 8), 0.6


def is_mxfp4(definition: Definition) -> bool:
    """Return whether the weights are mxfp4, with biases and the clipped SwiGLU."""
    return "w13_scale" in definition.interface.inputs


def scales_input(definition: Definition) -> bool:
    """Return whether a token's weight scales what goes into its expert."""
    return bool(definition.constants.get("scales_input"))


def hot_experts(definition: Definition, case: Case, stream: Stream) -> list[int]:
    """Return the experts that the tokens of a case choose from, with `ends` both ends."""
    count = definition.axes["num_experts"]
    order = stream.child("hot").permutation(count).tolist()
    if case.params.get("ends"):
        order = [0, count - 1, *order]
    return list(dict.fromkeys(order))[: case.params["hot"]]


def expert_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the interface's inputs; weights and their scales are lazy (`Tiled`).

    Of a token's experts some are -1 with `elsewhere`, for the last token all. A `gain`
    scales what the second weights make of inner values that `std` made larger. The
    weights of a token's experts sum to `share`, of several experts to 1 without it.
    """
    axes, mx = definition.axes, is_mxfp4(definition)
    tokens, top_k = case.axes["seq_len"], axes["top_k"]
    hidden, inner = axes["hidden_size"], axes["gemm1_out_size"] // 2
    hot = torch.tensor(hot_experts(definition, case, stream))
    draws = stream.child("routing")
    # where fewer experts are here than a token has, the others are elsewhere
    padded = torch.cat((hot, torch.full((max(top_k - len(hot), 0),), -1)))
    rows = [
        padded.roll(-token)[:top_k][draws.child(f"{token}").permutation(top_k)]
        for token in range(tokens)
    ]
    ids = torch.stack(rows).int()
    shares = torch.tensor(draws.integers(2**20, 3 * 2**20, tokens * top_k)).float()
    weights = (shares / 2**22).view(tokens, top_k)
    if top_k > 1:
        weights = weights / weights.sum(dim=1, keepdim=True)
    weights = weights * case.params.get("share", 1.0)
    if case.params.get("elsewhere"):
        if top_k > 1:
            ids[:, 0] = -1
        ids[-1] = -1
    x = stream.child("x").values((tokens, hidden), case.params.get("std", 1.0))
    gain = math.sqrt(top_k) / _INNER_RMS
    # a weight that scales the input does so to both factors
    gain *= 4.0 if scales_input(definition) else 1.0
    gain *= case.params.get("gain", 1.0)
    made: dict[str, Any] = {
        "hidden_states": x.to(torch.bfloat16),
        "topk_ids": ids,
        "topk_weights": weights,
    }
    deviations = {"w13": hidden**-0.5, "w2": gain * inner**-0.5}
    for name, std in deviations.items():
        drawn = stream.child(name)
        if not mx:
            made[name] = _tiled(definition, name, drawn, std)
            continue
        made[name] = _bytes(definition, name, drawn, 0, 256)
        exponent = 127 + round(math.log2(std / _E2M1_RMS))
        scales = drawn.child("scale")
        made[f"{name}_scale"] = _bytes(
            definition, f"{name}_scale", scales, exponent - 1, exponent + 2
        )
        made[f"{name}_bias"] = drawn.child("bias").values(
            _shape(definition, f"{name}_bias"), 0.5, torch.bfloat16
        )
    return {name: made[name] for name in definition.interface.inputs}


def _shape(definition: Definition, name: str) -> tuple[int, ...]:
    return shape_of(definition.interface.input_specs[name], definition.axes)


def _tiled(definition: Definition, name: str, stream: Stream, std: float) -> Tiled:
    experts, rows, columns = _shape(definition, name)
    shape = (experts, rows, columns)
    base = stream.values((base_length(shape),), std, torch.bfloat16)
    return Tiled(base, shape)


def _bytes(
    definition: Definition, name: str, stream: Stream, low: int, high: int
) -> Tiled:
    experts, rows, columns = _shape(definition, name)
    shape = (experts, rows, columns)
    # many values at once; what is left of a division is hardly bell-shaped any more
    wide = stream.values((base_length(shape),), 100.0)
    drawn = low + wide.floor().remainder(high - low)
    return Tiled(drawn.to(torch.uint8).view(torch.int8), shape)
