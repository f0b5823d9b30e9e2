"""nvfp4 held to "95 % within 0.5": the share follows the outputs' size, not the kernel."""

import torch

from kernel_judge import bounds
from kernel_judge.conventions import share_within

VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
TOKENS, K, COLUMNS = 8, 768, 128


def quantised(x):
    """Return values rounded to e2m1 with a scale for each block of 16."""
    blocks = x.reshape(-1, 16)
    scale = (blocks.abs().amax(1, keepdim=True) / 6.0).clamp_min(1e-12)
    place = ((blocks.abs() / scale)[..., None] - VALUES).abs().argmin(-1)
    return (VALUES[place] * blocks.sign() * scale).reshape(x.shape)


def right(seed, spoil=lambda x, w: (x, w)):
    """Return a product of nvfp4 activations in bfloat16, and of unrounded in float64."""
    torch.manual_seed(seed)
    x, w = torch.randn(TOKENS, K), 0.095 * torch.randn(K, COLUMNS)
    a, b = spoil(quantised(x), w)
    return (a @ b).bfloat16(), x.double() @ w.double()


wrong = {
    "everything times 0.96": lambda seed: right(seed, lambda x, w: (0.96 * x, w)),
    "everything times 1.05": lambda seed: right(seed, lambda x, w: (1.05 * x, w)),
    "three of 128 columns never written": lambda seed: right(
        seed, lambda x, w: (x, torch.cat([w[:, :-3], 0 * w[:, -3:]], 1))
    ),
}


def theirs(actual, expected):
    return share_within(actual, expected, rtol=0.0, atol=0.5, percent=0.95)[0]


def ours(elements, scale):
    return bounds(
        dtype="bfloat16",
        terms=K,
        rounded=1,
        rounded_to=0.25,
        scale=scale,
        elements=elements,
    )
