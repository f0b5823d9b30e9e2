"""moe: definitions under test, and a fault of each kind for each of them."""

from __future__ import annotations

BLOCKS = {
    "num_hidden_blocks": 2,
    "num_intermediate_blocks": 1,
    "num_gemm1_out_blocks": 2,
}
SMALL = {"hidden_size": 256, "intermediate_size": 128, "gemm1_out_size": 256}
DEEPSEEK = "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048"
KIMI = "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e48_h7168_i2048"
RENORM = "moe_fp8_block_scale_renorm_topk10_e128_h2048_i512"
# a device's share, of four, of two that together hold all, and with choices given
RENORM_SHARD = "moe_fp8_block_scale_renorm_shard_topk10_e128_h2048_i512"
FP4_SHARD = "trtllm_fp4_block_scale_moe_shard_topk8_e64_h4096_i1536"
ROUTED_SHARD = "trtllm_fp4_block_scale_routed_moe_shard_topk10_e128_h2048_i512"
SHARDS = (RENORM_SHARD, FP4_SHARD, ROUTED_SHARD)
FP4 = "trtllm_fp4_block_scale_moe_topk8_e128_h2048_i768"
FP4_LLAMA4 = "trtllm_fp4_block_scale_moe_topk1_e16_h5120_i8192"
ROUTED = "trtllm_fp4_block_scale_routed_moe_topk8_e64_h4096_i1536"
TENSOR = "trtllm_fp8_per_tensor_scale_moe_topk8_e128_h2048_i768"
TENSOR_LLAMA4 = "trtllm_fp8_per_tensor_scale_moe_topk1_e16_h5120_i8192"
EVERY = (DEEPSEEK, KIMI, RENORM, FP4, FP4_LLAMA4, ROUTED, TENSOR, TENSOR_LLAMA4)
EVERY += SHARDS

HALVES = ("up, gate = (", "gate, up = (")
GATE = {
    "gate and up swapped": HALVES,
    "no silu": ("torch.nn.functional.silu(gate)", "gate"),
    "sigmoid for silu": ("functional.silu(gate)", "functional.sigmoid(gate)"),
    "zeros": ("return output.to", "return (0 * output).to"),
    "sign flipped": ("return output.to", "return (-output).to"),
    "rows of w2 in reverse": ("@ w2.T", "@ w2.flip(0).T"),
}
BLOCK_SCALES = {
    "hidden scale not transposed": (
        "hidden_states_scale.T.unsqueeze(2)",
        "hidden_states_scale.reshape(len(hidden_states), -1).unsqueeze(2)",
    ),
    "no hidden scale": ("blocks * hidden_states_scale.T.unsqueeze(2)", "blocks"),
    "scales of the next rows": (
        "scales[:, None, :, None]",
        "scales.roll(1, 0)[:, None, :, None]",
    ),
    "scales of the next columns": (
        "scales[:, None, :, None]",
        "scales.roll(1, 1)[:, None, :, None]",
    ),
    "no scales": ("blocks * scales[:, None, :, None]", "blocks / 2048"),
}
UNWEIGHTED = {
    "no weights": (" * weights[tokens, slots].unsqueeze(1)", ""),
    # an equal place in another token's list of experts
    "weights of the token before": (
        "weights[tokens, slots]",
        "weights[tokens - 1, slots]",
    ),
    "weights of the first slot": ("weights[tokens, slots]", "weights[tokens, 0]"),
}
SOFTMAX = {
    "softmax over all experts": (
        "torch.softmax(logits, dim=1)",
        "torch.softmax(routing_logits.float(), dim=1).gather(1, experts)",
    ),
    "sigmoid for softmax": ("torch.softmax(logits, dim=1)", "torch.sigmoid(logits)"),
    "one expert fewer": (".topk(TOP_K, dim=1)", ".topk(TOP_K - 1, dim=1)"),
}
WRONG_EXPERT = {
    "the next expert's w13": ("gemm1_weights[expert]", "gemm1_weights[expert - 1]"),
    "the next expert's w2": ("gemm2_weights[expert]", "gemm2_weights[expert - 1]"),
}
INPUT_SCALE = {
    "no score": (" * torch.sigmoid(logits).unsqueeze(1)", ""),
    "bias in the score": (
        "torch.sigmoid(logits).unsqueeze(1)",
        "(torch.sigmoid(logits) + routing_bias[experts].float()).unsqueeze(1)",
    ),
    "bias in the choice": (
        "routing_logits.float().max(dim=1)",
        "(torch.sigmoid(routing_logits.float()) + routing_bias.float()).max(dim=1)",
    ),
    "choice by scores, which saturate": (
        "logits, experts = routing_logits.float().max(dim=1)",
        "logits, experts = torch.sigmoid(routing_logits.float()).logit().max(dim=1)",
    ),
    "logit for score": ("torch.sigmoid(logits)", "logits"),
}
TENSOR_SCALES = {
    "no scale of up": (" * output1_scales_scalar[expert]", " * 1e-3"),
    "no scale of gate": (" * output1_scales_gate_scalar[expert]", " * 1e-6"),
    "scale of gate for up": (
        "output1_scales_scalar[expert]",
        "(output1_scales_gate_scalar[expert] * 16)",
    ),
    "scale of gate behind silu": (
        "silu(gate) * up",
        (
            "silu(gate / output1_scales_gate_scalar[expert]) * up"
            " * output1_scales_gate_scalar[expert]"
        ),
    ),
    "the next expert's output scale": (
        "output2_scales_scalar[expert]",
        "output2_scales_scalar[expert - 1]",
    ),
}
GROUPED = {
    "no normalisation": (" / chosen.sum(dim=1, keepdim=True)", ""),
    "no scaling factor": (" * routed_scaling_factor", ""),
    "the model's scaling factor": ("* routed_scaling_factor", "* 2.5"),
    "biased weights": ("scores.gather(", "biased.gather("),
    "bias left out": (" + routing_bias.float()", " + 0 * routing_bias.float()"),
    "softmax for sigmoid": (
        "torch.sigmoid(routing_logits.float())",
        "torch.softmax(routing_logits.float(), dim=1)",
    ),
    "local offset ignored": (" + local_expert_offset", ""),
    "one expert fewer": (".topk(TOP_K, dim=1)", ".topk(TOP_K - 1, dim=1)"),
    "the next expert's w13": (
        "dequantize(gemm1_weights[local_expert]",
        "dequantize(gemm1_weights[local_expert - 1]",
    ),
    "the next expert's w2": (
        "dequantize(gemm2_weights[local_expert]",
        "dequantize(gemm2_weights[local_expert - 1]",
    ),
    "normalised over local experts": (
        "chosen.sum(dim=1, keepdim=True)",
        (
            "(chosen * ((experts >= local_expert_offset) & (experts <"
            " local_expert_offset + gemm1_weights.shape[0]))).sum(1, keepdim=True)"
            ".clamp_min(0.1)"
        ),
    ),
}
GROUPS = {
    # where all sums are negative, 0 is the best
    "other groups masked by 0": ('float("-inf")', "0.0"),
    "no group limit": ("masked_fill(~allowed", "masked_fill(False & ~allowed"),
    "groups by their best": (".topk(2, dim=2)", ".topk(1, dim=2)"),
    "groups by their sum": ("grouped.topk(2, dim=2).values.sum", "grouped.sum"),
    "one group fewer": (".topk(TOPK_GROUP, dim=1)", ".topk(TOPK_GROUP - 1, dim=1)"),
}
PACKED = {
    "weights as float16": (".view(torch.bfloat16)", ".view(torch.float16)"),
    "expert in the lower half": ("topk_ids >> 16", "(topk_ids >> 8) & 63"),
    "integer weights": (".view(torch.bfloat16).float()", ".float() / 16384"),
    "weight scales the input": (
        "torch.nn.functional.silu(gate) * up",
        "torch.nn.functional.silu(gate * weights[tokens, slots].unsqueeze(1)) * up",
    ),
}
SHARED = {
    "local offset ignored": (" + local_expert_offset", ""),
    "another device's experts": ("+ local_expert_offset", "- local_expert_offset"),
}
HERE_ALONE = {
    "choice among local experts alone": (
        "logits, experts = routing_logits.float()",
        (
            "here = torch.arange(routing_logits.shape[1]) - local_expert_offset\n"
            "    here = (here >= 0) & (here < len(gemm1_weights))\n"
            "    logits, experts ="
            " routing_logits.float().where(here, torch.tensor(-1e9))"
        ),
    ),
    "normalised over local experts": (
        "weights = torch.softmax(logits, dim=1)",
        (
            "here = (experts >= local_expert_offset) & (experts <"
            " local_expert_offset + len(gemm1_weights))\n"
            "    weights = torch.softmax(logits.where(here, torch.tensor(-1e9)), dim=1)"
        ),
    ),
}
MATRICES = ("rows of w2 in reverse",)
PLAIN = {name: fault for name, fault in GATE.items() if name not in MATRICES}
FAULTS = {
    DEEPSEEK: GATE | BLOCK_SCALES | UNWEIGHTED | GROUPED | GROUPS,
    KIMI: GATE | BLOCK_SCALES | UNWEIGHTED | GROUPED,
    RENORM: GATE | BLOCK_SCALES | UNWEIGHTED | SOFTMAX,
    FP4: PLAIN | UNWEIGHTED | SOFTMAX | WRONG_EXPERT,
    FP4_LLAMA4: PLAIN | INPUT_SCALE | WRONG_EXPERT,
    ROUTED: PLAIN | UNWEIGHTED | PACKED | WRONG_EXPERT,
    TENSOR: PLAIN | UNWEIGHTED | SOFTMAX | WRONG_EXPERT | TENSOR_SCALES,
    TENSOR_LLAMA4: PLAIN | INPUT_SCALE | WRONG_EXPERT | TENSOR_SCALES,
    RENORM_SHARD: SOFTMAX | WRONG_EXPERT | SHARED | HERE_ALONE,
    FP4_SHARD: SOFTMAX | WRONG_EXPERT | SHARED | HERE_ALONE,
    ROUTED_SHARD: UNWEIGHTED | PACKED | WRONG_EXPERT | SHARED,
}
PAIRS = [(name, fault) for name, faults in FAULTS.items() for fault in faults]
