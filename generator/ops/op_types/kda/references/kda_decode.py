"""One step of Kimi delta attention, for one token a sequence."""

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
) -> tuple[torch.Tensor, torch.Tensor]:
    queries = normalised(q) * q.shape[-1] ** -0.5
    keys = normalised(k)
    steps = torch.nn.functional.softplus(a.float() + dt_bias)
    # One gate for each channel of the key: [batch_size, num_heads, head_dim].
    decay = torch.exp(-torch.exp(A_log).unsqueeze(-1) * steps)
    beta = torch.sigmoid(b.float())

    # States are [batch_size, num_heads, values, keys].
    decayed = state * decay.unsqueeze(-2)
    recalled = (decayed * keys.unsqueeze(-2)).sum(dim=-1)
    # A share beta of what the key recalls is replaced by the new value.
    added = beta.unsqueeze(-1) * (v.float() - recalled)
    new_state = decayed + added.unsqueeze(-1) * keys.unsqueeze(-2)
    read = (new_state * queries.unsqueeze(-2)).sum(dim=-1)
    return read.to(v.dtype), new_state
