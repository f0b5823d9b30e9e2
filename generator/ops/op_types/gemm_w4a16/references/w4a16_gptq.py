"""x @ W of packed int4 weights in GPTQ's layout, W rounded to float16."""

import torch

GROUP = 128


def nibbles(words: torch.Tensor, dim: int) -> torch.Tensor:
    parts = [(words >> shift) & 15 for shift in range(0, 32, 4)]
    return torch.stack(parts, dim=dim).flatten(dim - 1, dim).float()


@torch.no_grad()
def run(
    x: torch.Tensor, qweight: torch.Tensor, qzeros: torch.Tensor, scales: torch.Tensor
) -> torch.Tensor:
    out = torch.zeros(x.shape[0], scales.shape[1], device=x.device)
    # What is stored is one less than the zero.
    zeros = nibbles(qzeros, 2) + 1
    # A group at a time: float32 copies of all weights may take gigabytes.
    for group in range(scales.shape[0]):
        rows = slice(group * GROUP, (group + 1) * GROUP)
        words = slice(group * GROUP // 8, (group + 1) * GROUP // 8)
        codes = nibbles(qweight[words], 1)
        # Kernels multiply by the scale in float16: the product is rounded to it.
        weight = ((codes - zeros[group]) * scales[group].float()).half()
        out += x[:, rows].float() @ weight.float()
    return out.half()
