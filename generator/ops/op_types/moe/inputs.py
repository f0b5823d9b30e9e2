"""Inputs of the MoE definitions, scaled so that outputs are about 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from generator.ops.op_types.moe import routing
from generator.ops.op_types.moe.weights import (
    BLOCK,
    CODE_STD,
    draw_f8,
    draw_f8_rows,
    draw_mx,
    draw_scales,
    draw_scales_below,
    power_of_two,
)
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

# scale of the values between the products, so that float8_e4m3 holds them
ACTIVATION_SCALE = 16.0
# compensates how much the routing shrinks the sum of the experts' outputs
_GAIN = {
    routing.DEEPSEEK: 3.0,
    routing.RENORMALIZE: 3.0,
    routing.ROUTED: 2.0,
    routing.LLAMA4: 4.0,
}
# largest RMS of an expert's outputs before its weight, with one scale per expert. The
# bounds assume outputs up to 2: a weight of Llama 4 is at most sigmoid(2) and counts
# twice; of several weights that add up to 1, with DeepSeek's factor to 2.5, none is close
# to the sum
_LARGEST = {
    routing.DEEPSEEK: 1.6,
    routing.RENORMALIZE: 4.0,
    routing.ROUTED: 4.0,
    routing.LLAMA4: 2.5,
}


def hot_experts(definition: Definition, case: Case, stream: Stream) -> list[int]:
    """Return the experts that the tokens of a case select from, as model numbers.

    The case's `local` of them are local experts, `remote` are not.
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


def remote_experts(definition: Definition, here: int) -> int:
    """Return of how many experts elsewhere tokens choose, beside `here` local ones.

    DeepSeek's scores favour local experts. Other routings favour none: of as many, a
    token has about half its experts here.
    """
    experts, local = routing.experts_of(definition)
    top_k: int = definition.constants["top_k"]
    if routing.routing_of(definition) == routing.DEEPSEEK:
        return min(experts - local, 3 * top_k)
    return min(experts - local, max(here, top_k))


def end_experts(definition: Definition, case: Case) -> list[int]:
    """Return the first and the last local expert for a case with `ends`, else none."""
    if "ends" not in case.params:
        return []
    offset, local = case.params["offset"], routing.experts_of(definition)[1]
    return [offset] if local == 1 else [offset, offset + local - 1]


def routing_inputs(
    definition: Definition, case: Case, stream: Stream
) -> dict[str, Any]:
    """Return the routing inputs of the definition's method.

    topk_ids int32 [seq_len, top_k], or routing_logits [seq_len, experts], float32 for
    DeepSeek and bfloat16 otherwise, and routing_bias bfloat16 [experts].
    """
    method, tokens = routing.routing_of(definition), case.axes["seq_len"]
    experts = routing.experts_of(definition)[0]
    hot = hot_experts(definition, case, stream)
    top_k = definition.constants["top_k"]
    ends = end_experts(definition, case)
    own, uneven = stream.child("routing"), "uneven" in case.params
    if method == routing.ROUTED:
        odd = "odd" in case.params
        ids = routing.packed_choices(own, tokens, top_k, hot, ends, uneven, odd)
        return {"topk_ids": ids}
    if method == routing.DEEPSEEK:
        raised = ends or hot[: case.params["local"]]
        mean = case.params.get("bias_mean", 0.0)
        logits, bias = routing.draw_scores(own, tokens, experts, hot, raised, mean)
        if "rivals" in case.params:
            here = hot[: case.params["local"]]
            given = (definition, logits, bias, here, case.params["offset"])
            routing.set_rivals(own.child("rivals"), *given)
        return {"routing_logits": logits, "routing_bias": bias}
    # sigmoid of one above 17 is 1 in float32, as that of the next
    top = case.params.get("top", 1.0 if method == routing.LLAMA4 else 4.0)
    logits = routing.draw_logits(own, tokens, experts, hot, top, ends, uneven)
    inputs = {"routing_logits": logits.to(torch.bfloat16)}
    if method == routing.LLAMA4:
        # who adds it chooses other experts: scores are 0 to 1
        inputs["routing_bias"] = own.child("bias").values((experts,)).bfloat16()
    return inputs


def token_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the hidden states, with their block scales if declared.

    hidden_states bfloat16 or float8_e4m3fn [seq_len, hidden_size];
    hidden_states_scale float32 [hidden_size / 128, seq_len].
    """
    tokens, hidden = case.axes["seq_len"], definition.axes["hidden_size"]
    own = stream.child("hidden_states")
    if definition.interface.input_specs["hidden_states"].dtype == "bfloat16":
        return {"hidden_states": own.values((tokens, hidden)).bfloat16()}
    inputs = {"hidden_states": draw_f8_rows(own, tokens, hidden)}
    if "hidden_states_scale" in definition.interface.inputs:
        shape = (hidden // BLOCK, tokens)
        draw = _scales_of(case)
        inputs["hidden_states_scale"] = draw(own.child("scale"), shape, 1.0 / CODE_STD)
    return inputs


def _scales_of(case: Case) -> Callable[..., torch.Tensor]:
    """Return what draws the scales of a case, given a stream, a shape and an RMS."""
    if "below" in case.params:
        return draw_scales_below
    return partial(draw_scales, all_bits="all_bits" in case.params)


def weight_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the local experts' weights, with their scales if declared.

    gemm1_weights [experts, 2 · intermediate_size, hidden_size] and gemm2_weights
    [experts, hidden_size, intermediate_size] as `Tiled`, of float8_e4m3fn or of float32
    that mxfp4 holds; block scales float32, one for 128·128 elements; expert scales
    float32 [experts].
    """
    axes, interface = definition.axes, definition.interface
    experts = routing.experts_of(definition)[1]
    hidden, intermediate = axes["hidden_size"], axes["intermediate_size"]
    first = (experts, 2 * intermediate, hidden)
    second = (experts, hidden, intermediate)
    gain = _GAIN[routing.routing_of(definition)]
    sizes = 1.0 / math.sqrt(hidden), gain / math.sqrt(intermediate)
    one, two = stream.child("gemm1"), stream.child("gemm2")
    if interface.input_specs["gemm1_weights"].dtype == "float32":
        # the output of a single expert is not averaged with others
        more = 3.0 if definition.constants["top_k"] > 1 else 1.5
        return {
            "gemm1_weights": draw_mx(one, first, sizes[0]),
            "gemm2_weights": draw_mx(two, second, more * sizes[1]),
        }
    draw = _scales_of(case)
    inputs: dict[str, Any] = {
        "gemm1_weights": draw_f8(one, first),
        "gemm2_weights": draw_f8(two, second),
    }
    if "gemm1_weights_scale" in interface.inputs:
        for name, own, (_, rows, columns), size in (
            ("gemm1_weights_scale", one, first, sizes[0]),
            ("gemm2_weights_scale", two, second, 0.8 * sizes[1]),
        ):
            shape = (experts, rows // BLOCK, columns // BLOCK)
            inputs[name] = draw(own.child("scale"), shape, size / CODE_STD)
        return inputs
    # hidden states have no scale here: the scale of the first product includes theirs
    undone = sizes[0] / CODE_STD**2
    gate = draw(one.child("gate"), (experts,), undone)
    up = draw(one.child("up"), (experts,), undone)
    down = draw(two.child("down"), (experts,), 1.0)
    largest = _LARGEST[routing.routing_of(definition)]
    # scores of 1 where others are at most sigmoid(2), which counts twice
    largest = 1.6 if "top" in case.params else largest
    down = _limited(definition, largest, gate, up, down)
    return {
        **inputs,
        "output1_scales_scalar": up * ACTIVATION_SCALE,
        "output1_scales_gate_scalar": gate,
        "output2_scales_scalar": down / ACTIVATION_SCALE,
    }


def _limited(
    definition: Definition,
    largest: float,
    gate: torch.Tensor,
    up: torch.Tensor,
    down: torch.Tensor,
) -> torch.Tensor:
    """Return `down` times powers of two, so that experts' outputs are close to `largest`.

    Three independent scales would make outputs of 0.2 for one expert and of 16 for
    another. For symmetric x, the RMS of silu(x) is at most that of x over sqrt(2).
    Single IEEE operations give the same bits on every machine. All are float32
    [experts].
    """
    axes = definition.axes
    products = math.sqrt(axes["hidden_size"]) * CODE_STD**2
    drawn = gate.double() * up.double() * down.double()
    rms = drawn * (products**2 * math.sqrt(axes["intermediate_size"] / 2.0) * CODE_STD)
    # frexp's mantissa is 1/2 … 1: an exponent less by one does not exceed the limit
    exponents = torch.frexp(largest / rms).exponent - 1
    return down * power_of_two(exponents)
