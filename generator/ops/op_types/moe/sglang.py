"""SGLang's MoE: its routing, its Triton experts and its PyTorch experts.

SGLang gets only the selected experts, renumbered, so that no other weights are made or
copied to its order [gate; up]. Experts on other devices are -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from generator.ops.op_types.moe import routing
from generator.ops.op_types.moe.weights import BLOCK, as_mxfp4, by_blocks, gate_first
from kernel_judge.definition import Definition

Inputs = Mapping[str, Any]
_EXPERTS_AT_ONCE = 8


def run_triton_f8(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Call the Triton kernel on float8 weights; return bfloat16 [seq_len, hidden_size].

    The kernel quantises the hidden states, which restores their scales, and the values
    between the products, which the definition does not quantise.
    """
    from generator.ops.op_types.moe.sglang_calls import triton_moe

    x = hidden_states(inputs).to(torch.bfloat16)
    weights, ids = route(definition, inputs, x)
    experts, ids = chosen(definition, inputs, ids)
    # copy bytes: not every operation supports float8
    bytes_one = [inputs["gemm1_weights"][e].view(torch.uint8) for e in experts]
    bytes_two = [inputs["gemm2_weights"][e].view(torch.uint8) for e in experts]
    one = torch.stack([gate_first(matrix) for matrix in bytes_one])
    scales = inputs["gemm1_weights_scale"]
    with triton_moe(block_shape=(BLOCK, BLOCK)) as fused_experts:
        output: torch.Tensor = fused_experts(
            x,
            one.view(torch.float8_e4m3fn),
            torch.stack(bytes_two).view(torch.float8_e4m3fn),
            weights,
            ids,
            inplace=False,
            use_fp8_w8a8=True,
            w1_scale=torch.stack([gate_first(scales[e]) for e in experts]),
            w2_scale=inputs["gemm2_weights_scale"][experts].contiguous(),
            block_shape=[BLOCK, BLOCK],
        )
    return output


def run_triton_bf16(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Call the Triton kernel on weights dequantised to bfloat16.

    Returns bfloat16 [seq_len, hidden_size].
    """
    from generator.ops.op_types.moe.sglang_calls import triton_moe

    x = hidden_states(inputs).to(torch.bfloat16)
    weights, ids = route(definition, inputs, x)
    experts, ids = chosen(definition, inputs, ids)
    one, two = dequantized(inputs, experts, torch.bfloat16)
    with triton_moe() as fused_experts:
        output: torch.Tensor = fused_experts(
            x,
            one,
            two,
            weights,
            ids,
            inplace=False,
            # Llama 4 multiplies an expert's input by its weight, not its output
            apply_router_weight_on_input=routing.routing_of(definition)
            == routing.LLAMA4,
        )
    return output


def run_native(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Call SGLang's PyTorch code in float32; return bfloat16 [seq_len, hidden_size].

    It does not support remote experts: each pair of a token and a local expert becomes a
    token, and this function adds the outputs of a token. A few experts are asked at once:
    those of a workload, in float32, may be more than a GPU holds.
    """
    from sglang.srt.layers.moe.fused_moe_native import moe_forward_native

    x = hidden_states(inputs)
    weights, ids = route(definition, inputs, x)
    experts, ids = chosen(definition, inputs, ids)
    if routing.routing_of(definition) == routing.LLAMA4:
        x, weights = x * weights, torch.ones_like(weights)
    tokens, slots = (ids >= 0).nonzero(as_tuple=True)
    total = torch.zeros_like(x)
    if len(tokens) == 0:
        return total.to(torch.bfloat16)
    config = SimpleNamespace(
        apply_router_weight_on_input=False,
        activation="silu",
        gemm1_alpha=None,
        gemm1_clamp_limit=None,
    )
    outputs = x.new_empty(len(tokens), x.shape[1])
    places = ids[tokens, slots]
    for first in range(0, len(experts), _EXPERTS_AT_ONCE):
        some = experts[first : first + _EXPERTS_AT_ONCE]
        one, two = dequantized(inputs, some, torch.float32)
        layer = SimpleNamespace(num_experts=len(some), w13_weight=one, w2_weight=two)
        here = ((places >= first) & (places < first + len(some))).nonzero()[:, 0]
        routed = (weights[tokens, slots][here, None], places[here, None] - first, None)
        outputs[here] = moe_forward_native(layer, x[tokens[here]], routed, config)
    for slot in range(ids.shape[1]):
        # one slot at a time: no token occurs twice in an index
        total[tokens[slots == slot]] += outputs[slots == slot]
    return total.to(torch.bfloat16)


def route(
    definition: Definition, inputs: Inputs, x: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return SGLang's weights, float32, and experts, int32: both [seq_len, top_k].

    x is float [seq_len, hidden_size].
    """
    from sglang.srt.layers.moe import topk

    method, constants = routing.routing_of(definition), definition.constants
    if method == routing.ROUTED:
        ids, weights = routing.unpack(inputs["topk_ids"])
        return weights.contiguous(), ids.contiguous()
    top_k, logits = constants["top_k"], inputs["routing_logits"].float()
    if method == routing.RENORMALIZE:
        picked = topk.fused_topk_torch_native(x, logits, top_k, True)
    elif method == routing.LLAMA4:
        from sglang.srt.models.llama4 import Llama4MoE

        # weights have the dtype of its first argument, which it reads nothing else of
        picked = Llama4MoE.custom_routing_function(x.float(), logits, top_k, False)
    else:
        scaling = {
            "routed_scaling_factor": inputs["routed_scaling_factor"],
            "apply_routed_scaling_factor_on_output": True,
        }
        bias = inputs["routing_bias"]
        if constants["n_group"] == 1:
            picked = topk.kimi_k2_biased_topk_impl(
                x, logits, bias, top_k, True, **scaling
            )
        else:
            picked = topk.biased_grouped_topk_impl(
                x,
                logits,
                bias,
                top_k,
                True,
                constants["n_group"],
                constants["topk_group"],
                **scaling,
            )
    weights, ids = picked
    return weights.float().contiguous(), ids.to(torch.int32).contiguous()


def chosen(
    definition: Definition, inputs: Inputs, ids: torch.Tensor
) -> tuple[list[int], torch.Tensor]:
    """Return the selected local experts, at least one, and `ids` as places among them.

    ids and places are int32 [seq_len, top_k]; the place of a remote expert is -1.
    """
    count = routing.experts_of(definition)[1]
    local = ids - inputs.get("local_expert_offset", 0)
    here = (local >= 0) & (local < count)
    experts = local[here].unique().tolist() or [0]
    places = torch.full((count,), -1, dtype=torch.int32, device=ids.device)
    order = torch.arange(len(experts), dtype=torch.int32, device=ids.device)
    places[experts] = order
    place = places[local.clamp(0, count - 1).long()]
    return experts, place.where(here, torch.full_like(place, -1))


def hidden_states(inputs: Inputs) -> torch.Tensor:
    """Return the dequantised hidden states: float32 [seq_len, hidden_size]."""
    x: torch.Tensor = inputs["hidden_states"].float()
    if "hidden_states_scale" in inputs:
        # scales are [block of 128, token]
        scales = inputs["hidden_states_scale"].T.contiguous()
        x = (x.view(len(x), -1, BLOCK) * scales[:, :, None]).view(x.shape)
    return x


def dequantized(
    inputs: Inputs, experts: list[int], dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the dequantised weights of some experts, of `dtype`.

    [gate; up] is [experts, 2 · intermediate_size, hidden_size], down is [experts,
    hidden_size, intermediate_size]. bfloat16 rounds if scales have more than 4 bits.
    """
    first = _dequantized_expert(inputs, experts[0])
    # filled in turn: a list of all, beside what is made of it, would not fit
    one, two = (m.new_empty(len(experts), *m.shape, dtype=dtype) for m in first)
    for place, expert in enumerate(experts):
        one[place], two[place] = _dequantized_expert(inputs, expert)
    return one, two


def _dequantized_expert(
    inputs: Inputs, expert: int
) -> tuple[torch.Tensor, torch.Tensor]:
    one, two = inputs["gemm1_weights"][expert], inputs["gemm2_weights"][expert]
    if "gemm1_weights_scale" in inputs:
        one = by_blocks(one, inputs["gemm1_weights_scale"][expert])
        two = by_blocks(two, inputs["gemm2_weights_scale"][expert])
        return gate_first(one), two
    if "output1_scales_scalar" in inputs:
        up, gate = one.float().chunk(2)
        up = up * inputs["output1_scales_scalar"][expert]
        gate = gate * inputs["output1_scales_gate_scalar"][expert]
        two = two.float() * inputs["output2_scales_scalar"][expert]
        return torch.cat([gate, up]), two
    # the production kernel takes mxfp4, which holds these weights exactly
    quantized = as_mxfp4(one), as_mxfp4(two)
    for weights, exact in zip((one, two), quantized, strict=True):
        assert torch.equal(weights, exact), "weights that mxfp4 rounds"
    return gate_first(quantized[0]), quantized[1]
