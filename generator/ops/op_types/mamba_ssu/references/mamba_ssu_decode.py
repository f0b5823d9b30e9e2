"""One step of the selective state space model of Mamba 2, for states in a pool."""

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
    dt_bias: torch.Tensor,
    state_batch_indices: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    heads_per_group = x.shape[1] // B.shape[1]

    # Slot -1 marks padding: such a row returns 0 and writes no state.
    rows = (state_batch_indices >= 0).nonzero().squeeze(1)
    slots = state_batch_indices[rows].long()

    inputs = x[rows].float()  # [rows, nheads, head_dim]
    steps = torch.nn.functional.softplus(dt[rows].float() + dt_bias.float())
    # Heads g * heads_per_group ... (g + 1) * heads_per_group - 1 share group g.
    to_state = B[rows].float().repeat_interleave(heads_per_group, dim=1)
    to_output = C[rows].float().repeat_interleave(heads_per_group, dim=1)

    # [rows, nheads, head_dim, dstate]
    decay = torch.exp(A.float() * steps.unsqueeze(-1))
    added = (steps * inputs).unsqueeze(-1) * to_state.unsqueeze(2)
    updated = state[slots].float() * decay + added

    # The output reads the state before it is rounded to the pool's dtype.
    read = torch.einsum("rhds,rhs->rhd", updated, to_output)
    output = torch.zeros_like(x)
    output[rows] = (read + D.float() * inputs).to(x.dtype)
    new_state = state.clone()
    new_state[slots] = updated.to(state.dtype)
    return output, new_state
