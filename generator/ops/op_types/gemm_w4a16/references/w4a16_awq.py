"""x @ W of packed int4 weights in AWQ's layout, W rounded to float16."""

import torch

GROUP = 128
# where the eight columns of a word lie in it, in steps of four bits
PLACES = (0, 4, 1, 5, 2, 6, 3, 7)


def unpacked(words: torch.Tensor) -> torch.Tensor:
    columns = [(words >> (4 * place)) & 15 for place in PLACES]
    return torch.stack(columns, dim=2).flatten(1).float()


@torch.no_grad()
def run(
    x: torch.Tensor, qweight: torch.Tensor, qzeros: torch.Tensor, scales: torch.Tensor
) -> torch.Tensor:
    out = torch.zeros(x.shape[0], scales.shape[1], device=x.device)
    zeros = unpacked(qzeros)
    # A group at a time: float32 copies of all weights may take gigabytes.
    for group in range(scales.shape[0]):
        rows = slice(group * GROUP, (group + 1) * GROUP)
        codes = unpacked(qweight[rows])
        # Kernels multiply by the scale in float16: the product is rounded to it.
        weight = ((codes - zeros[group]) * scales[group].float()).half()
        out += x[:, rows].float() @ weight.float()
    return out.half()
