"""Weighted sum of a token's experts, whose weights are float8 with scales of blocks."""

import torch

BLOCK = 128


@torch.no_grad()
def run(
    hidden_states: torch.Tensor,
    topk_ids: torch.Tensor,
    topk_weights: torch.Tensor,
    w13: torch.Tensor,
    w13_scale: torch.Tensor,
    w2: torch.Tensor,
    w2_scale: torch.Tensor,
) -> torch.Tensor:
    x = hidden_states.float()
    output = torch.zeros_like(x)
    for expert in sorted(set(topk_ids.flatten().tolist())):
        # An expert of another device is -1 and adds nothing.
        if expert >= 0:
            token, slot = (topk_ids == expert).nonzero(as_tuple=True)
            both = x[token] @ dequantize(w13[expert], w13_scale[expert]).T
            gate, up = both.chunk(2, dim=1)
            # Kernels round this to float8; here it stays in float32.
            inner = torch.nn.functional.silu(gate) * up
            y = inner @ dequantize(w2[expert], w2_scale[expert]).T
            output.index_add_(0, token, y * topk_weights[token, slot, None])
    return output.to(torch.bfloat16)


def dequantize(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    # A block of 128 rows and 128 columns has one scale.
    rows, columns = codes.shape
    blocks = codes.float().view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)
    return (blocks * scales[:, None, :, None]).view(rows, columns)
