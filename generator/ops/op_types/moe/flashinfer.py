"""FlashInfer's trtllm-gen MoE kernels, which need SM100.

They take w13 as [up; gate], as the definitions do. The kernels for fp4 and for one scale
per expert expect its rows interleaved and shuffled for their tiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.op_types.moe import routing
from generator.ops.op_types.moe.weights import MX_BLOCK, quantize_mxfp4
from kernel_judge.definition import Definition

Inputs = Mapping[str, Any]
# flashinfer.tllm_enums.RoutingMethodType
_METHODS = {
    routing.RENORMALIZE: 1,
    routing.DEEPSEEK: 2,
    routing.LLAMA4: 3,
    # the weights are given; the method only limits their number
    routing.ROUTED: 1,
}
# rows of the kernels' epilogue
_TILE = 128


def run_f8_block(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Call trtllm_fp8_block_scale_moe; return bfloat16 [seq_len, hidden_size].

    It takes the inputs unchanged.
    """
    from flashinfer.fused_moe import trtllm_fp8_block_scale_moe

    method = routing.routing_of(definition)
    grouped = method == routing.DEEPSEEK
    experts, local = routing.experts_of(definition)
    constants = definition.constants
    output: torch.Tensor = trtllm_fp8_block_scale_moe(
        inputs["routing_logits"],
        inputs.get("routing_bias"),
        inputs["hidden_states"],
        inputs["hidden_states_scale"],
        inputs["gemm1_weights"],
        inputs["gemm1_weights_scale"],
        inputs["gemm2_weights"],
        inputs["gemm2_weights_scale"],
        experts,
        constants["top_k"],
        constants["n_group"] if grouped else None,
        constants["topk_group"] if grouped else None,
        definition.axes["intermediate_size"],
        inputs.get("local_expert_offset", 0),
        local,
        inputs.get("routed_scaling_factor"),
        routing_method_type=_METHODS[method],
        use_shuffled_weight=False,
        weight_layout=0,
    )
    return output


def run_f4_block(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Call the fp4 kernels on mxfp4 weights; return bfloat16 [seq_len, hidden_size].

    The kernels multiply an expert's output by its weight. Llama 4 multiplies its input:
    for it the hidden states are multiplied first, and the kernel gets weights of 1.
    That and the quantisation of float32 weights are rewritten inputs.
    """
    from flashinfer import fused_moe

    x = inputs["hidden_states"]
    method = routing.routing_of(definition)
    if method == routing.LLAMA4:
        largest, ids = inputs["routing_logits"].float().max(dim=1, keepdim=True)
        x = (x.float() * torch.sigmoid(largest)).to(x.dtype)
        topk_ids = routing.pack(ids, torch.ones_like(ids, dtype=torch.float32))
    elif method == routing.ROUTED:
        topk_ids = inputs["topk_ids"]
    one = _shuffled_mx(inputs["gemm1_weights"], gated=True)
    two = _shuffled_mx(inputs["gemm2_weights"], gated=False)
    experts, local = routing.experts_of(definition)
    arguments = {
        "routing_bias": None,
        "hidden_states": x,
        "hidden_states_scale": None,
        "gemm1_weights": one[0],
        "gemm1_weights_scale": one[1],
        "gemm1_bias": None,
        "gemm1_alpha": None,
        "gemm1_beta": None,
        "gemm1_clamp_limit": None,
        "gemm2_weights": two[0],
        "gemm2_weights_scale": two[1],
        "gemm2_bias": None,
        "output1_scale_scalar": None,
        "output1_scale_gate_scalar": None,
        "output2_scale_scalar": None,
        "num_experts": experts,
        "top_k": definition.constants["top_k"],
        "n_group": None,
        "topk_group": None,
        "intermediate_size": definition.axes["intermediate_size"],
        "local_expert_offset": inputs.get("local_expert_offset", 0),
        "local_num_experts": local,
        "routed_scaling_factor": None,
        "routing_method_type": _METHODS[routing.RENORMALIZE],
    }
    if method == routing.RENORMALIZE:
        outputs = fused_moe.trtllm_fp4_block_scale_moe(
            routing_logits=inputs["routing_logits"], **arguments
        )
    else:
        outputs = fused_moe.trtllm_fp4_block_scale_routed_moe(
            topk_ids=topk_ids, **arguments
        )
    output: torch.Tensor = outputs[0]
    return output


def run_f8_per_tensor(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Call trtllm_fp8_per_tensor_scale_moe; return bfloat16 [seq_len, hidden_size].

    It reads no bias in Llama 4's routing, whose interface has one.
    """
    from flashinfer.fused_moe import trtllm_fp8_per_tensor_scale_moe

    method = routing.routing_of(definition)
    experts = routing.experts_of(definition)[0]
    output: torch.Tensor = trtllm_fp8_per_tensor_scale_moe(
        inputs["routing_logits"],
        inputs.get("routing_bias"),
        inputs["hidden_states"],
        _shuffled_f8(inputs["gemm1_weights"], gated=True),
        inputs["output1_scales_scalar"],
        inputs["output1_scales_gate_scalar"],
        _shuffled_f8(inputs["gemm2_weights"], gated=False),
        inputs["output2_scales_scalar"],
        experts,
        definition.constants["top_k"],
        None,
        None,
        definition.axes["intermediate_size"],
        0,
        experts,
        None,
        method == routing.LLAMA4,
        routing_method_type=_METHODS[method],
    )
    return output


def _shuffled_f8(weights: torch.Tensor, gated: bool) -> torch.Tensor:
    """Return float8 weights with each expert's rows in the kernel's order."""
    shuffled = torch.empty_like(weights)
    source, target = weights.view(torch.uint8), shuffled.view(torch.uint8)
    order = _row_order(source[0], gated)
    for expert, matrix in enumerate(source):
        target[expert] = matrix[order]
    return shuffled


def _shuffled_mx(
    weights: torch.Tensor, gated: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mxfp4 codes and scales with each expert's rows in the kernel's order.

    Codes are uint8 [experts, n, k / 2]; scales [experts, n, k / 32] are ue8m0 bytes
    viewed as float8_e4m3fn, as the kernel expects.
    """
    from flashinfer.quantization.fp4_quantization import block_scale_interleave

    experts, n, k = weights.shape
    codes, scales = [], []
    for matrix in weights:
        packed, exponents = quantize_mxfp4(matrix)
        codes.append(packed[_row_order(packed, gated)])
        rows = exponents[_row_order(exponents, gated, MX_BLOCK)].contiguous()
        scales.append(block_scale_interleave(rows))
    shape = (experts, n, k // MX_BLOCK)
    return (
        torch.stack(codes),
        torch.stack(scales).view(torch.float8_e4m3fn).reshape(shape),
    )


def _row_order(
    matrix: torch.Tensor, gated: bool, scale_block: int | None = None
) -> torch.Tensor:
    """Return the kernel's order of the rows of a uint8 matrix: int64 [rows].

    `scale_block` is the block size if the matrix holds scales.
    """
    from flashinfer.fused_moe import core

    name = (
        "_maybe_get_cached_w3_w1_permute_indices"
        if gated
        else "get_w2_permute_indices_with_cache"
    )
    order: torch.Tensor = getattr(core, name)(
        {}, matrix, _TILE, num_elts_per_sf=scale_block
    )
    return order.to(matrix.device)
