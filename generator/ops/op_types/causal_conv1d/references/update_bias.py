"""Causal convolution of one token a sequence, for states in a pool."""

import torch


@torch.no_grad()
def run(
    x: torch.Tensor,
    conv_states: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    cache_indices: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    # Slot -1 marks padding: such a row returns 0 and writes no state.
    rows = (cache_indices >= 0).nonzero().squeeze(1)
    slots = cache_indices[rows].long()
    seen = torch.cat((conv_states[slots], x[rows].unsqueeze(2)), dim=2)

    convolved = bias.float() + (seen.float() * weight.float()).sum(dim=-1)
    output = torch.zeros_like(x)
    output[rows] = torch.nn.functional.silu(convolved).to(x.dtype)
    new_conv_states = conv_states.clone()
    new_conv_states[slots] = seen[:, :, 1:]
    return output, new_conv_states
