"""A device's share of experts with float8 block scales, chosen among all experts."""

import torch

BLOCK = 128
TOP_K = 8


@torch.no_grad()
def run(
    routing_logits: torch.Tensor,
    hidden_states: torch.Tensor,
    hidden_states_scale: torch.Tensor,
    gemm1_weights: torch.Tensor,
    gemm1_weights_scale: torch.Tensor,
    gemm2_weights: torch.Tensor,
    gemm2_weights_scale: torch.Tensor,
    local_expert_offset: int,
) -> torch.Tensor:
    logits, experts = routing_logits.float().topk(TOP_K, dim=1)
    weights = torch.softmax(logits, dim=1)

    # Scales of the hidden states lie as [block, token].
    blocks = hidden_states.float().view(len(hidden_states), -1, BLOCK)
    states = (blocks * hidden_states_scale.T.unsqueeze(2)).flatten(1)

    output = torch.zeros_like(states)
    for expert in range(len(gemm1_weights)):
        number = expert + local_expert_offset
        tokens, slots = (experts == number).nonzero(as_tuple=True)
        if len(tokens) == 0:
            continue
        w13 = dequantize(gemm1_weights[expert], gemm1_weights_scale[expert])
        w2 = dequantize(gemm2_weights[expert], gemm2_weights_scale[expert])
        up, gate = (states[tokens] @ w13.T).chunk(2, dim=1)
        expert_output = (torch.nn.functional.silu(gate) * up) @ w2.T
        output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
    return output.to(torch.bfloat16)


def dequantize(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Multiply each block of 128 x 128 by its scale, in float32."""
    rows, columns = values.shape
    blocks = values.float().view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)
    return (blocks * scales[:, None, :, None]).view(rows, columns)
