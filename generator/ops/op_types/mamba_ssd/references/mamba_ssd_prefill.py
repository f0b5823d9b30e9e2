"""The selective state space model of Mamba 2, one token of a sequence after another."""

import torch


@torch.no_grad()
def run(
    x: torch.Tensor,
    dt: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    dt_bias: torch.Tensor,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    heads_per_group = x.shape[1] // B.shape[1]
    inputs = x.float()
    steps = torch.nn.functional.softplus(dt.float() + dt_bias)
    # Heads g * heads_per_group ... (g + 1) * heads_per_group - 1 share group g.
    to_state = B.float().repeat_interleave(heads_per_group, dim=1)
    to_output = C.float().repeat_interleave(heads_per_group, dim=1)
    decay = torch.exp(A * steps)  # [total_tokens, nheads]
    weighted = steps.unsqueeze(2) * inputs

    output = torch.empty_like(x)
    new_state = state.clone()
    for sequence, current in enumerate(new_state):
        start, end = cu_seqlens[sequence : sequence + 2].tolist()
        for t in range(start, end):
            # [nheads, head_dim, dstate], updated in place
            current.mul_(decay[t, :, None, None])
            current.add_(weighted[t].unsqueeze(2) * to_state[t].unsqueeze(1))
            read = (current * to_output[t].unsqueeze(1)).sum(dim=2)
            output[t] = (read + D.unsqueeze(1) * inputs[t]).to(x.dtype)
    return output, new_state
