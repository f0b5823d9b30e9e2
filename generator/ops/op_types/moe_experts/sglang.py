"""SGLang's experts: its Triton kernel and its PyTorch code.

SGLang gets only the experts that tokens choose, renumbered; those elsewhere are -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from generator.ops.op_types.moe.sglang_calls import triton_moe
from generator.ops.op_types.moe.weights import BLOCK, by_blocks, dequantize_mxfp4
from generator.ops.op_types.moe_experts.inputs import is_mxfp4, scales_input
from kernel_judge.definition import Definition

Inputs = Mapping[str, Any]
_ALPHA, _LIMIT = 1.702, 7.0


def run_triton(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Call fused_experts_impl; return bfloat16 [seq_len, hidden_size]."""
    experts, ids = _chosen(inputs["topk_ids"])
    keywords: dict[str, Any] = {}
    if is_mxfp4(definition):
        keywords = {"gemm1_alpha": _ALPHA, "gemm1_limit": _LIMIT}
        for key, name in (("b1", "w13_bias"), ("b2", "w2_bias")):
            keywords[key] = inputs[name][experts].contiguous()
    with triton_moe() as fused_experts:
        output: torch.Tensor = fused_experts(
            inputs["hidden_states"],
            *(_weights(inputs, n, experts, torch.bfloat16) for n in ("w13", "w2")),
            inputs["topk_weights"].contiguous(),
            ids,
            inplace=False,
            apply_router_weight_on_input=scales_input(definition),
            **keywords,
        )
    return output


def run_triton_fp8(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Call fused_experts_impl on float8 weights; return bfloat16 [seq_len, hidden_size].

    The kernel quantises the hidden states and the values between the products.
    """
    experts, ids = _chosen(inputs["topk_ids"])
    # bytes are stacked: not every operation knows float8
    codes = [
        torch.stack([inputs[name][e].view(torch.uint8) for e in experts])
        for name in ("w13", "w2")
    ]
    with triton_moe(block_shape=(BLOCK, BLOCK)) as fused_experts:
        output: torch.Tensor = fused_experts(
            inputs["hidden_states"],
            *(matrices.view(torch.float8_e4m3fn) for matrices in codes),
            inputs["topk_weights"].contiguous(),
            ids,
            inplace=False,
            use_fp8_w8a8=True,
            w1_scale=torch.stack([inputs["w13_scale"][e] for e in experts]),
            w2_scale=torch.stack([inputs["w2_scale"][e] for e in experts]),
            block_shape=[BLOCK, BLOCK],
        )
    return output


def run_native(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Call moe_forward_native in float32; return bfloat16 [seq_len, hidden_size].

    It knows no experts elsewhere: each pair of a token and an expert becomes a token,
    and this function adds the outputs of a token.
    """
    from sglang.srt.layers.moe.fused_moe_native import moe_forward_native

    x, weights = inputs["hidden_states"].float(), inputs["topk_weights"]
    experts, ids = _chosen(inputs["topk_ids"])
    tokens, slots = (ids >= 0).nonzero(as_tuple=True)
    total = torch.zeros_like(x)
    if len(tokens) == 0:
        return total.to(torch.bfloat16)
    layer = SimpleNamespace(
        num_experts=len(experts),
        w13_weight=_weights(inputs, "w13", experts, torch.float32),
        w2_weight=_weights(inputs, "w2", experts, torch.float32),
    )
    config = SimpleNamespace(
        apply_router_weight_on_input=False,
        activation="silu",
        gemm1_alpha=None,
        gemm1_clamp_limit=None,
    )
    if is_mxfp4(definition):
        layer.w13_weight_bias = inputs["w13_bias"][experts].float()
        layer.w2_weight_bias = inputs["w2_bias"][experts].float()
        config.gemm1_alpha, config.gemm1_clamp_limit = _ALPHA, _LIMIT
    rows, factors = x[tokens], weights[tokens, slots, None]
    if scales_input(definition):
        rows, factors = rows * factors, torch.ones_like(factors)
    routed = (factors, ids[tokens, slots, None], None)
    outputs = moe_forward_native(layer, rows, routed, config)
    for slot in range(ids.shape[1]):
        # one slot at a time: no token occurs twice in an index
        total[tokens[slots == slot]] += outputs[slots == slot]
    return total.to(torch.bfloat16)


def _chosen(ids: torch.Tensor) -> tuple[list[int], torch.Tensor]:
    """Return the experts of tokens, at least one, and ids as places among them."""
    experts = sorted(set(ids.flatten().tolist()) - {-1}) or [0]
    known = torch.tensor(experts, device=ids.device)
    places = torch.searchsorted(known, ids.long().clamp(min=0))
    return experts, torch.where(ids < 0, -1, places).to(torch.int32)


def _weights(
    inputs: Inputs, name: str, experts: list[int], dtype: torch.dtype
) -> torch.Tensor:
    """Return the matrices of some experts, dequantised, of a dtype."""
    matrices = []
    for expert in experts:
        matrix = inputs[name][expert]
        if f"{name}_scale" in inputs:
            widen = dequantize_mxfp4 if f"{name}_bias" in inputs else by_blocks
            matrix = widen(matrix, inputs[f"{name}_scale"][expert])
        matrices.append(matrix.to(dtype))
    return torch.stack(matrices)
