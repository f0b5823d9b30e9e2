"""Update of hyper-connections' streams behind a layer."""

import torch


@torch.no_grad()
def run(
    x: torch.Tensor,
    residual: torch.Tensor,
    post_layer_mix: torch.Tensor,
    comb_res_mix: torch.Tensor,
) -> torch.Tensor:
    written = post_layer_mix.unsqueeze(2) * x.float().unsqueeze(1)
    # Row i, column j of a mix is the share of stream i in the new stream j.
    mixed = torch.einsum("tij,tih->tjh", comb_res_mix, residual.float())
    return (written + mixed).to(residual.dtype)
