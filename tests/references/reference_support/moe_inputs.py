"""Inputs of the MoE definitions: each kind's tensors, of a size that outputs are about 1."""

from __future__ import annotations

import math
from typing import Any

import torch

from . import moe_routing as routing
from .definition import Case, Definition
from .moe_weights import (
    BLOCK,
    CODE_STD,
    draw_f8,
    draw_f8_rows,
    draw_mx,
    draw_scales,
    power_of_two,
)
from .stream import Stream

# of the intermediate values of per-tensor scaling, which float8_e4m3 is to hold
ACTIVATION_SCALE = 16.0
# how much a method shrinks the sum of the experts' outputs
_GAIN = {
    routing.DEEPSEEK: 3.0,
    routing.RENORMALIZE: 3.0,
    routing.ROUTED: 2.0,
    routing.LLAMA4: 4.0,
}
# of an expert's outputs before its weight, where each has one scale for all of them. The
# bounds are made for outputs up to 2: a weight of Llama 4 is at most sigmoid(2) and counts
# twice; of many that add up to 1, as to 2.5 by DeepSeek's factor, none is near all
_LARGEST = {
    routing.DEEPSEEK: 1.6,
    routing.RENORMALIZE: 4.0,
    routing.ROUTED: 4.0,
    routing.LLAMA4: 2.5,
}


def hot_experts(definition: Definition, case: Case, stream: Stream) -> list[int]:
    """Return the experts that all of a case's tokens choose from.

    `local` of them are here, at random places; `remote` ones are not.
    """
    experts, local = routing.experts_of(definition)
    offset = case.params.get("offset", 0)
    here = stream.child("local").permutation(local).tolist()
    ends = end_experts(definition, case)
    here = [e - offset for e in ends] + [e for e in here if offset + e not in ends]
    here = here[: case.params["local"]]
    elsewhere = [
        e
        for e in stream.child("remote").permutation(experts).tolist()
        if not offset <= e < offset + local
    ]
    return [offset + e for e in here] + elsewhere[: case.params["remote"]]


def end_experts(definition: Definition, case: Case) -> list[int]:
    """Return the first and the last local expert where a case is about these."""
    if "ends" not in case.params:
        return []
    offset, local = case.params["offset"], routing.experts_of(definition)[1]
    return [offset] if local == 1 else [offset, offset + local - 1]


def routing_inputs(
    definition: Definition, case: Case, stream: Stream
) -> dict[str, Any]:
    """Return what says where the tokens go: logits and bias, or packed ids."""
    method, tokens = routing.routing_of(definition), case.axes["seq_len"]
    experts = routing.experts_of(definition)[0]
    hot = hot_experts(definition, case, stream)
    top_k = definition.constants["top_k"]
    ends = end_experts(definition, case)
    own, uneven = stream.child("routing"), "uneven" in case.params
    if method == routing.ROUTED:
        ids = routing.packed_choices(own, tokens, top_k, hot, ends, uneven)
        return {"topk_ids": ids}
    if method == routing.DEEPSEEK:
        raised = ends or hot[: case.params["local"]]
        mean = case.params.get("bias_mean", 0.0)
        logits, bias = routing.draw_scores(own, tokens, experts, hot, raised, mean)
        return {"routing_logits": logits, "routing_bias": bias}
    top = 1.0 if method == routing.LLAMA4 else 4.0
    logits = routing.draw_logits(own, tokens, experts, hot, top, ends, uneven)
    made = {"routing_logits": logits.to(torch.bfloat16)}
    if method == routing.LLAMA4:
        # logits that follow each other are up to 1/32 apart as sigmoids
        std = 0.02 if case.params["bias"] else 0.0
        made["routing_bias"] = own.child("bias").values((experts,), std).bfloat16()
    return made


def token_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the hidden states with their scales where they have such."""
    tokens, hidden = case.axes["seq_len"], definition.axes["hidden_size"]
    own = stream.child("hidden_states")
    if definition.interface.input_specs["hidden_states"].dtype == "bfloat16":
        return {"hidden_states": own.values((tokens, hidden)).bfloat16()}
    made = {"hidden_states": draw_f8_rows(own, tokens, hidden)}
    if "hidden_states_scale" in definition.interface.inputs:
        shape = (hidden // BLOCK, tokens)
        made["hidden_states_scale"] = draw_scales(
            own.child("scale"), shape, 1.0 / CODE_STD, "all_bits" in case.params
        )
    return made


def weight_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the experts' weights with their scales where they have such."""
    axes, interface = definition.axes, definition.interface
    experts = routing.experts_of(definition)[1]
    hidden, intermediate = axes["hidden_size"], axes["intermediate_size"]
    first = (experts, 2 * intermediate, hidden)
    second = (experts, hidden, intermediate)
    gain = _GAIN[routing.routing_of(definition)]
    sizes = 1.0 / math.sqrt(hidden), gain / math.sqrt(intermediate)
    one, two = stream.child("gemm1"), stream.child("gemm2")
    if interface.input_specs["gemm1_weights"].dtype == "float32":
        # where there is one expert, no other's output averages with its own
        more = 3.0 if definition.constants["top_k"] > 1 else 1.5
        return {
            "gemm1_weights": draw_mx(one, first, sizes[0]),
            "gemm2_weights": draw_mx(two, second, more * sizes[1]),
        }
    all_bits = "all_bits" in case.params
    made: dict[str, Any] = {
        "gemm1_weights": draw_f8(one, first),
        "gemm2_weights": draw_f8(two, second),
    }
    if "gemm1_weights_scale" in interface.inputs:
        for name, own, (_, rows, columns), size in (
            ("gemm1_weights_scale", one, first, sizes[0]),
            ("gemm2_weights_scale", two, second, 0.8 * sizes[1]),
        ):
            shape = (experts, rows // BLOCK, columns // BLOCK)
            scales = draw_scales(own.child("scale"), shape, size / CODE_STD, all_bits)
            made[name] = scales
        return made
    # the hidden states have no scale of their own: the first product's undoes theirs
    undone = sizes[0] / CODE_STD**2
    gate = draw_scales(one.child("gate"), (experts,), undone, all_bits)
    up = draw_scales(one.child("up"), (experts,), undone, all_bits)
    down = draw_scales(two.child("down"), (experts,), 1.0, all_bits)
    down = _limited(definition, gate, up, down)
    return {
        **made,
        "output1_scales_scalar": up * ACTIVATION_SCALE,
        "output1_scales_gate_scalar": gate,
        "output2_scales_scalar": down / ACTIVATION_SCALE,
    }


def _limited(
    definition: Definition, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor
) -> torch.Tensor:
    """Return `down` times powers of two: every expert's outputs are as large as may be.

    Three scales drawn apart would make outputs of 0.2 for one expert and of 16 for
    another. The RMS of silu(x) is at most that of x over sqrt(2), x being as often
    positive as negative. Single IEEE operations, for the same bits on every machine.
    """
    axes = definition.axes
    products = math.sqrt(axes["hidden_size"]) * CODE_STD**2
    drawn = gate.double() * up.double() * down.double()
    rms = drawn * (products**2 * math.sqrt(axes["intermediate_size"] / 2.0) * CODE_STD)
    # a mantissa of 1/2 … 1 times two to this power: one less does not exceed the limit
    exponents = torch.frexp(_LARGEST[routing.routing_of(definition)] / rms).exponent - 1
    return down * power_of_two(exponents)
