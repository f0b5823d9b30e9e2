"""Inputs of experts, scaled so that outputs are about 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.op_types.moe.weights import (
    BLOCK,
    CODE_STD,
    draw_f8,
    draw_f8_rows,
    draw_scales,
)
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.lazy_weights import Tiled, base_length
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream

# root mean square of uniform e2m1 codes, and of what is between the products
_E2M1_RMS, _INNER_RMS = math.sqrt(68.5 / 8), 0.6
# a prime number: no row of scales begins as another one
_SCALES = 4099


def is_mxfp4(definition: Definition) -> bool:
    """Return whether the weights are mxfp4, with biases and the clipped SwiGLU."""
    return "w13_bias" in definition.interface.inputs


def is_fp8(definition: Definition) -> bool:
    """Return whether the weights are float8 with scales of blocks."""
    names = definition.interface.inputs
    return "w13_scale" in names and "w13_bias" not in names


def expert_sizes(axes: Mapping[str, int]) -> tuple[int, int]:
    """Return the experts whose weights are here, and those of a token.

    Shared experts that are fused with the others count as well.
    """
    names = ("num_experts", "top_k")
    if "num_all_experts" in axes:
        names = ("num_all_experts", "top_k_and_shared")
    return axes[names[0]], axes[names[1]]


def scales_input(definition: Definition) -> bool:
    """Return whether a token's weight scales what goes into its expert."""
    return bool(definition.constants.get("scales_input"))


def shared_experts(definition: Definition) -> int:
    """Return how many experts of each token are shared ones: 1, or 0."""
    return int("num_all_experts" in definition.axes)


def hot_experts(definition: Definition, case: Case, stream: Stream) -> list[int]:
    """Return the experts that the tokens of a case choose from, with `ends` both ends.

    A shared one is not among them.
    """
    count = expert_sizes(definition.axes)[0] - shared_experts(definition)
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
    tokens, (count, top_k) = case.axes["seq_len"], expert_sizes(axes)
    routed = top_k - shared_experts(definition)
    hidden, inner = axes["hidden_size"], axes["gemm1_out_size"] // 2
    hot = torch.tensor(hot_experts(definition, case, stream))
    draws = stream.child("routing")
    # where fewer experts are here than a token has, the others are elsewhere
    padded = torch.cat((hot, torch.full((max(routed - len(hot), 0),), -1)))
    rows = [
        padded.roll(-token)[:routed][draws.child(f"{token}").permutation(routed)]
        for token in range(tokens)
    ]
    ids = torch.stack(rows).int()
    if routed < top_k:
        ids = torch.nn.functional.pad(ids, (0, 1), value=count - 1)
    shares = torch.tensor(draws.integers(2**20, 3 * 2**20, tokens * top_k)).float()
    weights = (shares / 2**22).view(tokens, top_k)
    if top_k > 1:
        weights = weights / weights.sum(dim=1, keepdim=True)
    weights = weights * case.params.get("share", 1.0)
    if case.params.get("elsewhere"):
        if top_k > 1:
            ids[:, 0] = -1
        ids[-1] = -1
    x = _states(definition, case, stream, (tokens, hidden))
    gain = math.sqrt(top_k) / _INNER_RMS
    # a weight that scales the input does so to both factors
    gain *= 4.0 if scales_input(definition) else 1.0
    gain *= case.params.get("gain", 1.0)
    inputs: dict[str, Any] = {
        "hidden_states": x.to(torch.bfloat16),
        "topk_ids": ids,
        "topk_weights": weights,
    }
    deviations = {"w13": hidden**-0.5, "w2": gain * inner**-0.5}
    for name, std in deviations.items():
        drawn = stream.child(name)
        if is_fp8(definition):
            inputs |= _blocks(definition, name, drawn, std / CODE_STD)
            continue
        if not mx:
            inputs[name] = _tiled(definition, name, drawn, std)
            continue
        inputs[name] = _bytes(definition, name, drawn, 0, 256)
        exponent = 127 + round(math.log2(std / _E2M1_RMS))
        scales = drawn.child("scale")
        inputs[f"{name}_scale"] = _bytes(
            definition, f"{name}_scale", scales, exponent - 1, exponent + 2
        )
        inputs[f"{name}_bias"] = drawn.child("bias").values(
            _shape(definition, f"{name}_bias"), 0.5, torch.bfloat16
        )
    return {name: inputs[name] for name in definition.interface.inputs}


def _states(
    definition: Definition, case: Case, stream: Stream, shape: tuple[int, int]
) -> torch.Tensor:
    """Return what goes into experts, of deviation 1 or the case's `std`: float32.

    Kernels of float8 weights quantise it: blocks of 128 are codes times a scale, and have
    448 among them, so that nothing is lost.
    """
    drawn = stream.child("x")
    if not is_fp8(definition):
        return drawn.values(shape, case.params.get("std", 1.0))
    codes = draw_f8_rows(drawn, *shape).float().view(shape[0], -1, BLOCK)
    scales = draw_scales(drawn.child("scale"), codes.shape[:2], 1.0 / CODE_STD)
    return (codes * scales[:, :, None]).view(shape)


def _blocks(
    definition: Definition, name: str, stream: Stream, size: float
) -> dict[str, Any]:
    """Return float8 codes of a weight, and scales of its blocks of RMS `size`.

    The scales are few, in turn; no rows of blocks are alike.
    """
    experts, rows, columns = _shape(definition, name)
    shape = _shape(definition, f"{name}_scale")
    few = draw_scales(stream.child("scale"), (_SCALES,), size, all_bits=True)
    places = torch.arange(math.prod(shape)) % _SCALES
    return {
        name: draw_f8(stream, (experts, rows, columns)),
        f"{name}_scale": few[places].view(shape),
    }


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
