"""Input of a layer from hyper-connections' streams, and their mixing weights behind it."""

import torch

EPS = 1e-06
POST_FACTOR = 2.0
ROUNDS = 20


def divided(x: torch.Tensor, dim: int) -> torch.Tensor:
    return x / (x.sum(dim=dim, keepdim=True) + EPS)


@torch.no_grad()
def run(
    dot_mix: torch.Tensor,
    sqrsum: torch.Tensor,
    residual: torch.Tensor,
    mhc_scale: torch.Tensor,
    mhc_base: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    num_tokens, hc, hidden_size = residual.shape
    inverse_rms = torch.rsqrt(sqrsum / (hc * hidden_size) + EPS)
    mixes = dot_mix * inverse_rms.unsqueeze(1)
    # The first hc mixes are for what is read, the next for what is written.
    read = mixes[:, :hc] * mhc_scale[0] + mhc_base[:hc]
    written = mixes[:, hc : 2 * hc] * mhc_scale[1] + mhc_base[hc : 2 * hc]
    mixed = mixes[:, 2 * hc :] * mhc_scale[2] + mhc_base[2 * hc :]

    pre = torch.sigmoid(read) + EPS
    post_mix = POST_FACTOR * torch.sigmoid(written)
    # Rows and columns are divided by their sums in turns, columns last.
    comb = torch.softmax(mixed.view(num_tokens, hc, hc), dim=2) + EPS
    comb = divided(comb, dim=1)
    for _ in range(ROUNDS - 1):
        comb = divided(divided(comb, dim=2), dim=1)
    layer_input = (pre.unsqueeze(2) * residual.float()).sum(dim=1)
    return post_mix, comb, layer_input.to(residual.dtype)
