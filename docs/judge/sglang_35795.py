"""A bfloat16 output held to an absolute bound: half a step at 16 exceeds it."""

import torch

from kernel_judge import bounds
from kernel_judge.conventions import assert_close


def right(seed, gain=1.0, shift=0.0):
    """Return LayerNorm and rotation in float32, rounded to bfloat16, and in float64."""
    torch.manual_seed(seed)
    x, gamma, beta = torch.randn(37, 128), torch.randn(128), torch.randn(128)
    cos, sin = torch.randn(37, 64), torch.randn(37, 64)

    def norm(t, gain, shift):
        t = gain * torch.nn.functional.layer_norm(t, (128,))
        first, second = (t * gamma.to(t) + beta.to(t) + shift).chunk(2, dim=-1)
        c, s = cos.to(t), sin.to(t)
        return torch.cat([first * c - second * s, second * c + first * s], dim=-1)

    return norm(x, gain, shift).bfloat16(), norm(x.double(), 1.0, 0.0)


wrong = {
    "everything times 1.003": lambda seed: right(seed, gain=1.003),
    "everything times 0.998": lambda seed: right(seed, gain=0.998),
    "0.005 added before the rotation": lambda seed: right(seed, shift=0.005),
}


def theirs(actual, expected):
    return assert_close(actual.float(), expected.float(), rtol=0.0, atol=0.06)[0]


def ours(elements, scale):
    return bounds(dtype="bfloat16", terms=128, scale=scale, elements=elements)
