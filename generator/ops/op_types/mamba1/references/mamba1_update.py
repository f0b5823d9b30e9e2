"""One step of the selective state space model of Mamba 1, with a gate."""

import torch


@torch.no_grad()
def run(
    state: torch.Tensor,
    x: torch.Tensor,
    dt: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    z: torch.Tensor,
    dt_bias: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    channels = x.float()
    steps = torch.nn.functional.softplus(dt.float() + dt_bias)
    decay = torch.exp(steps.unsqueeze(-1) * A)
    added = (steps * channels).unsqueeze(-1) * B.float().unsqueeze(1)
    new_state = state * decay + added

    read = (new_state * C.float().unsqueeze(1)).sum(dim=-1)
    gate = torch.nn.functional.silu(z.float())
    output = (read + D * channels) * gate
    return output.to(x.dtype), new_state
