"""Kimi delta attention over whole sequences of different lengths, one after another."""

import torch

EPS = 1e-06


def normalised(x: torch.Tensor) -> torch.Tensor:
    x = x.float()
    return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + EPS)


@torch.no_grad()
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    A_log: torch.Tensor,
    dt_bias: torch.Tensor,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    starts = cu_seqlens[:-1].long()
    lengths = cu_seqlens[1:].long() - starts
    queries = normalised(q) * q.shape[-1] ** -0.5
    keys = normalised(k)
    values = v.float()
    steps = torch.nn.functional.softplus(a.float() + dt_bias)
    # One gate for each channel of the key: [total_tokens, num_heads, head_dim].
    decay = torch.exp(-torch.exp(A_log).unsqueeze(-1) * steps)
    beta = torch.sigmoid(b.float())

    output = torch.empty_like(v)
    # States are [num_seqs, num_heads, values, keys].
    new_state = state.clone()
    for position in range(max(lengths.tolist(), default=0)):
        # The token at this position of all sequences that are long enough.
        rows = (lengths > position).nonzero().squeeze(1)
        tokens = starts[rows] + position
        decayed = new_state[rows] * decay[tokens].unsqueeze(-2)
        recalled = (decayed * keys[tokens].unsqueeze(-2)).sum(dim=-1)
        # A share beta of what the key recalls is replaced by the new value.
        added = beta[tokens].unsqueeze(-1) * (values[tokens] - recalled)
        updated = decayed + added.unsqueeze(-1) * keys[tokens].unsqueeze(-2)
        read = (updated * queries[tokens].unsqueeze(-2)).sum(dim=-1)
        output[tokens] = read.to(v.dtype)
        new_state[rows] = updated
    return output, new_state
