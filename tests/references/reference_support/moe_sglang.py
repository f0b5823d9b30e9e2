"""SGLang's MoE for the definitions' inputs: its routing, its Triton and native experts.

Only the chosen experts are handed over, numbered anew: neither the other weights nor
their copies in SGLang's order [gate; up] are ever made. An expert that isn't here is -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from . import moe_routing as routing
from .definition import Definition
from .moe_weights import BLOCK, as_mxfp4, by_blocks, gate_first

Inputs = Mapping[str, Any]


def run_triton_f8(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Return what the Triton kernel gives for float8 weights and their block scales.

    It quantises the hidden states itself, which finds the scales they came with, and
    the values between the two products, which the definition leaves alone.
    """
    from .sglang_moe import triton_moe

    x = hidden_states(inputs).to(torch.bfloat16)
    weights, ids = route(definition, inputs, x)
    experts, ids = chosen(definition, inputs, ids)
    # not every operation knows float8: its bytes are moved
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
    """Return what the Triton kernel gives for the dequantised weights as bfloat16."""
    from .sglang_moe import triton_moe

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
            # Llama 4 weighs what goes into an expert, not what comes out
            apply_router_weight_on_input=routing.routing_of(definition)
            == routing.LLAMA4,
        )
    return output


def run_native(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Return what SGLang's PyTorch code gives in float32, rounded to bfloat16.

    That code knows no expert that isn't here. So each choice of one that is becomes a
    token of its own, and a token's sum is taken here.
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
    one, two = dequantized(inputs, experts, torch.float32)
    layer = SimpleNamespace(num_experts=len(experts), w13_weight=one, w2_weight=two)
    config = SimpleNamespace(
        apply_router_weight_on_input=False,
        activation="silu",
        gemm1_alpha=None,
        gemm1_clamp_limit=None,
    )
    routed = (weights[tokens, slots, None], ids[tokens, slots, None], None)
    outputs = moe_forward_native(layer, x[tokens], routed, config)
    for slot in range(ids.shape[1]):
        # one slot at a time, so that no token occurs twice
        total[tokens[slots == slot]] += outputs[slots == slot]
    return total.to(torch.bfloat16)


def route(
    definition: Definition, inputs: Inputs, x: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weights, float32, and experts, int32: [seq_len, top_k], by SGLang."""
    from sglang.srt.layers.moe import topk

    method, constants = routing.routing_of(definition), definition.constants
    if method == routing.ROUTED:
        ids, weights = routing.unpack(inputs["topk_ids"])
        return weights.contiguous(), ids.contiguous()
    top_k, logits = constants["top_k"], inputs["routing_logits"].float()
    if method == routing.RENORMALIZE:
        found = topk.fused_topk_torch_native(x, logits, top_k, True)
    elif method == routing.LLAMA4:
        found = topk.biased_topk_impl(
            x, logits, inputs["routing_bias"], top_k, renormalize=False
        )
    else:
        scaling = {
            "routed_scaling_factor": inputs["routed_scaling_factor"],
            "apply_routed_scaling_factor_on_output": True,
        }
        bias = inputs["routing_bias"]
        if constants["n_group"] == 1:
            found = topk.kimi_k2_biased_topk_impl(
                x, logits, bias, top_k, True, **scaling
            )
        else:
            found = topk.biased_grouped_topk_impl(
                x,
                logits,
                bias,
                top_k,
                True,
                constants["n_group"],
                constants["topk_group"],
                **scaling,
            )
    weights, ids = found
    return weights.float().contiguous(), ids.to(torch.int32).contiguous()


def chosen(
    definition: Definition, inputs: Inputs, ids: torch.Tensor
) -> tuple[list[int], torch.Tensor]:
    """Return the local experts that are chosen, and each choice's place among them.

    The place of an expert that isn't here is -1; at least one expert is returned.
    """
    count = routing.experts_of(definition)[1]
    local = ids - inputs.get("local_expert_offset", 0)
    here = (local >= 0) & (local < count)
    experts = local[here].unique().tolist() or [0]
    places = torch.full((count,), -1, dtype=torch.int32, device=ids.device)
    order = torch.arange(len(experts), dtype=torch.int32, device=ids.device)
    places[experts] = order
    found = places[local.clamp(0, count - 1).long()]
    return experts, found.where(here, torch.full_like(found, -1))


def hidden_states(inputs: Inputs) -> torch.Tensor:
    """Return the dequantised hidden states, float32 [seq_len, hidden_size]."""
    x: torch.Tensor = inputs["hidden_states"].float()
    if "hidden_states_scale" in inputs:
        # each block of 128 of a token has its scale: they come as [block, token]
        scales = inputs["hidden_states_scale"].T.contiguous()
        x = (x.view(len(x), -1, BLOCK) * scales[:, :, None]).view(x.shape)
    return x


def dequantized(
    inputs: Inputs, experts: list[int], dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return [gate; up] and down matrices of some experts, dequantised to a dtype.

    bfloat16 rounds the values of scales of more than 4 bits.
    """
    pairs = [_dequantized_expert(inputs, expert) for expert in experts]
    one, two = (
        torch.stack([matrix.to(dtype) for matrix in matrices])
        for matrices in zip(*pairs, strict=True)
    )
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
    # the production kernel's weights are mxfp4; these are so exactly
    quantized = as_mxfp4(one), as_mxfp4(two)
    for given, made in zip((one, two), quantized, strict=True):
        assert torch.equal(given, made), "weights that mxfp4 rounds"
    return gate_first(quantized[0]), quantized[1]
