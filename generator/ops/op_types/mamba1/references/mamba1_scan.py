"""The selective state space model of Mamba 1 over sequences, with a gate."""

import torch


@torch.no_grad()
def run(
    x: torch.Tensor,
    dt: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    z: torch.Tensor,
    dt_bias: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    batch_size, seq_len, dim = x.shape
    channels = x.float()
    steps = torch.nn.functional.softplus(dt.float() + dt_bias)
    state = torch.zeros(batch_size, dim, A.shape[1], device=x.device)
    reads = []
    for t in range(seq_len):
        step = steps[:, t]
        decay = torch.exp(step.unsqueeze(-1) * A)
        added = (step * channels[:, t]).unsqueeze(-1) * B[:, t].float().unsqueeze(1)
        state = state * decay + added
        reads.append((state * C[:, t].float().unsqueeze(1)).sum(dim=-1))
    gate = torch.nn.functional.silu(z.float())
    output = (torch.stack(reads, dim=1) + D * channels) * gate
    return output.to(x.dtype), state
