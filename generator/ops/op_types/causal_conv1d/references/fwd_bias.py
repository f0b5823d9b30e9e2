"""Causal convolution of several sequences whose states lie in a pool."""

import torch


@torch.no_grad()
def run(
    x: torch.Tensor,
    conv_states: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    cu_seqlens: torch.Tensor,
    cache_indices: torch.Tensor,
    has_initial_state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    state_len = conv_states.shape[2]
    output = torch.empty_like(x)
    new_conv_states = conv_states.clone()
    for i, slot in enumerate(cache_indices.tolist()):
        start, end = cu_seqlens[i : i + 2].tolist()
        before = conv_states[slot].T
        if not has_initial_state[i]:
            before = torch.zeros_like(before)
        seen = torch.cat((before, x[start:end]))  # [state_len + tokens, dim]

        # [tokens, dim, width]: what each output sees, the oldest input first
        windows = seen.float().unfold(0, weight.shape[1], 1)
        convolved = bias.float() + (windows * weight.float()).sum(dim=-1)
        output[start:end] = torch.nn.functional.silu(convolved).to(x.dtype)
        new_conv_states[slot] = seen[-state_len:].T
    return output, new_conv_states
