"""A gated delta net over whole sequences of different lengths, one after another."""

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
    cu_seqlens: torch.Tensor,
    scale: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    _, num_v_heads, head_size = v.shape
    heads_per_key = num_v_heads // k.shape[1]
    if not scale:
        scale = 1.0 / math.sqrt(head_size)
    starts = cu_seqlens[:-1].long()
    lengths = cu_seqlens[1:].long() - starts
    # States are [num_seqs, num_v_heads, values, keys].
    if state is None:
        shape = (len(starts), num_v_heads, head_size, head_size)
        new_state = torch.zeros(shape, dtype=torch.float32, device=v.device)
    else:
        new_state = state.clone()

    # Value heads h * heads_per_key ... (h + 1) * heads_per_key - 1 share key head h.
    queries = q.float().repeat_interleave(heads_per_key, dim=1)
    keys = k.float().repeat_interleave(heads_per_key, dim=1)
    values = v.float()
    steps = torch.nn.functional.softplus(a.float() + dt_bias.float())
    decay = torch.exp(-torch.exp(A_log.float()) * steps)  # [tokens, num_v_heads]
    beta = torch.sigmoid(b.float())

    output = torch.empty_like(v, dtype=torch.bfloat16)
    for position in range(max(lengths.tolist(), default=0)):
        # The token at this position of all sequences that are long enough.
        rows = (lengths > position).nonzero().squeeze(1)
        tokens = starts[rows] + position
        decayed = new_state[rows] * decay[tokens][..., None, None]
        recalled = torch.einsum("bhvk,bhk->bhv", decayed, keys[tokens])
        # A share beta of what the key recalls is replaced by the new value.
        added = beta[tokens].unsqueeze(-1) * (values[tokens] - recalled)
        updated = decayed + added.unsqueeze(-1) * keys[tokens].unsqueeze(-2)
        read = torch.einsum("bhvk,bhk->bhv", updated, queries[tokens])
        output[tokens] = (scale * read).to(torch.bfloat16)
        new_state[rows] = updated
    return output, new_state
