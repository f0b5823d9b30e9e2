"""A gated delta net over a few draft tokens of each sequence, states in a pool."""

import math

import torch


@torch.no_grad()
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    initial_state: torch.Tensor,
    initial_state_indices: torch.Tensor,
    A_log: torch.Tensor,
    a: torch.Tensor,
    dt_bias: torch.Tensor,
    b: torch.Tensor,
    scale: float | None,
    intermediate_states_buffer: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    batch_size, seq_len, num_v_heads, head_size = v.shape
    heads_per_key = num_v_heads // k.shape[2]
    if not scale:
        scale = 1.0 / math.sqrt(head_size)

    # Value heads h * heads_per_key ... (h + 1) * heads_per_key - 1 share key head h.
    queries = q.float().repeat_interleave(heads_per_key, dim=2)
    keys = k.float().repeat_interleave(heads_per_key, dim=2)
    values = v.float()
    steps = torch.nn.functional.softplus(a.float() + dt_bias.float())
    # [batch_size, seq_len, num_v_heads]
    decay = torch.exp(-torch.exp(A_log.float()) * steps)
    beta = torch.sigmoid(b.float())

    # States are [batch_size, num_v_heads, values, keys].
    state = initial_state[initial_state_indices.long()]
    output = torch.empty_like(v, dtype=torch.bfloat16)
    for t in range(seq_len):
        decayed = state * decay[:, t, :, None, None]
        recalled = torch.einsum("bhvk,bhk->bhv", decayed, keys[:, t])
        # A share beta of what the key recalls is replaced by the new value.
        added = beta[:, t].unsqueeze(-1) * (values[:, t] - recalled)
        state = decayed + added.unsqueeze(-1) * keys[:, t].unsqueeze(-2)
        read = torch.einsum("bhvk,bhk->bhv", state, queries[:, t])
        output[:, t] = (scale * read).to(torch.bfloat16)
        if intermediate_states_buffer is not None:
            # Row by row of the batch, not by slot of the pool.
            intermediate_states_buffer[:batch_size, t] = state
    # Which drafts are accepted is not known yet: the pool stays as it was.
    return output, initial_state.clone()
