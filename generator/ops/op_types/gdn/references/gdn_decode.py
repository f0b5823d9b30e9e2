"""One step of a gated delta net, for one token a sequence."""

import math

import torch


@torch.no_grad()
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    state: torch.Tensor | None,
    A_log: torch.Tensor,
    a: torch.Tensor,
    dt_bias: torch.Tensor,
    b: torch.Tensor,
    scale: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    batch_size, _, num_v_heads, head_size = v.shape
    heads_per_key = num_v_heads // k.shape[2]
    if not scale:
        scale = 1.0 / math.sqrt(head_size)
    if state is None:
        shape = (batch_size, num_v_heads, head_size, head_size)
        state = torch.zeros(shape, dtype=torch.float32, device=v.device)

    # Value heads h * heads_per_key ... (h + 1) * heads_per_key - 1 share key head h.
    queries = q[:, 0].float().repeat_interleave(heads_per_key, dim=1)
    keys = k[:, 0].float().repeat_interleave(heads_per_key, dim=1)
    steps = torch.nn.functional.softplus(a[:, 0].float() + dt_bias.float())
    decay = torch.exp(-torch.exp(A_log.float()) * steps)  # [batch_size, num_v_heads]
    beta = torch.sigmoid(b[:, 0].float())

    # States are [batch_size, num_v_heads, values, keys].
    decayed = state * decay[..., None, None]
    recalled = torch.einsum("bhvk,bhk->bhv", decayed, keys)
    # A share beta of what the key recalls is replaced by the new value.
    added = beta.unsqueeze(-1) * (v[:, 0].float() - recalled)
    new_state = decayed + added.unsqueeze(-1) * keys.unsqueeze(-2)
    read = torch.einsum("bhvk,bhk->bhv", new_state, queries)
    return (scale * read).to(torch.bfloat16).unsqueeze(1), new_state
