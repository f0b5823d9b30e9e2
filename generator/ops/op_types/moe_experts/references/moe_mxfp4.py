"""Weighted sum of a token's experts with mxfp4 weights, biases and a clipped SwiGLU."""

import torch

ALPHA = 1.702
LIMIT = 7.0
BLOCK = 32
BIAS = 127
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


@torch.no_grad()
def run(
    hidden_states: torch.Tensor,
    topk_ids: torch.Tensor,
    topk_weights: torch.Tensor,
    w13: torch.Tensor,
    w13_scale: torch.Tensor,
    w13_bias: torch.Tensor,
    w2: torch.Tensor,
    w2_scale: torch.Tensor,
    w2_bias: torch.Tensor,
) -> torch.Tensor:
    x = hidden_states.float()
    output = torch.zeros_like(x)
    for expert in sorted(set(topk_ids.flatten().tolist())):
        # An expert of another device is -1 and adds nothing.
        if expert >= 0:
            token, slot = (topk_ids == expert).nonzero(as_tuple=True)
            both = x[token] @ dequantize(w13[expert], w13_scale[expert]).T
            both = both + w13_bias[expert].float()
            # Rows of gate and up take turns.
            gate = both[:, 0::2].clamp(max=LIMIT)
            up = both[:, 1::2].clamp(-LIMIT, LIMIT)
            inner = gate * torch.sigmoid(ALPHA * gate) * (up + 1)
            y = inner @ dequantize(w2[expert], w2_scale[expert]).T
            y = y + w2_bias[expert].float()
            output.index_add_(0, token, y * topk_weights[token, slot, None])
    return output.to(torch.bfloat16)


def dequantize(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    # The first of two elements is in the lower half of a byte.
    table = torch.tensor([*VALUES, *(-v for v in VALUES)], device=codes.device)
    pairs = torch.stack((table.repeat(16), table.repeat_interleave(16)), dim=1)
    blocks = pairs[codes.view(torch.uint8).int()].view(len(codes), -1, BLOCK)
    factors = torch.exp2(scales.view(torch.uint8).float() - BIAS)
    return (blocks * factors[:, :, None]).flatten(1)
