"""Experts with float8 block scales, chosen as DeepSeek-V3 does."""

import torch

BLOCK = 128
TOP_K = 8
N_GROUP = 8
TOPK_GROUP = 4


@torch.no_grad()
def run(
    routing_logits: torch.Tensor,
    routing_bias: torch.Tensor,
    hidden_states: torch.Tensor,
    hidden_states_scale: torch.Tensor,
    gemm1_weights: torch.Tensor,
    gemm1_weights_scale: torch.Tensor,
    gemm2_weights: torch.Tensor,
    gemm2_weights_scale: torch.Tensor,
    local_expert_offset: int,
    routed_scaling_factor: float,
) -> torch.Tensor:
    num_tokens, num_experts = routing_logits.shape

    # The bias takes part in choosing only; a group is as good as its two best experts.
    scores = torch.sigmoid(routing_logits.float())
    biased = scores + routing_bias.float()
    grouped = biased.view(num_tokens, N_GROUP, num_experts // N_GROUP)
    group_scores = grouped.topk(2, dim=2).values.sum(dim=2)
    groups = group_scores.topk(TOPK_GROUP, dim=1).indices
    allowed = torch.zeros_like(group_scores).scatter(1, groups, 1.0).bool()
    candidates = grouped.masked_fill(~allowed.unsqueeze(2), float("-inf"))
    experts = candidates.flatten(1).topk(TOP_K, dim=1).indices

    chosen = scores.gather(1, experts)
    weights = chosen / chosen.sum(dim=1, keepdim=True) * routed_scaling_factor

    # Scales of the hidden states lie as [block, token].
    blocks = hidden_states.float().view(num_tokens, -1, BLOCK)
    states = (blocks * hidden_states_scale.T.unsqueeze(2)).flatten(1)

    output = torch.zeros_like(states)
    for local_expert in range(gemm1_weights.shape[0]):
        tokens, slots = (experts == local_expert + local_expert_offset).nonzero(
            as_tuple=True
        )
        if len(tokens) == 0:
            continue
        w13 = dequantize(gemm1_weights[local_expert], gemm1_weights_scale[local_expert])
        w2 = dequantize(gemm2_weights[local_expert], gemm2_weights_scale[local_expert])
        up, gate = (states[tokens] @ w13.T).chunk(2, dim=1)
        expert_output = (torch.nn.functional.silu(gate) * up) @ w2.T
        output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
    return output.to(torch.bfloat16)


def dequantize(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Multiply each block of 128 x 128 by its scale, in float32."""
    rows, columns = values.shape
    blocks = values.float().view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)
    return (blocks * scales[:, None, :, None]).view(rows, columns)
