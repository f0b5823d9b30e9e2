"""NMSE of an output with one element: where its terms cancel, noise is all there is."""

import torch

from kernel_judge import bounds
from kernel_judge.conventions import nmse

K, COLUMNS = 256, 64


def right(seed, spoil=lambda x, w: (x, w)):
    """Return products of int8 activations, one scale for 32, and those unrounded."""
    torch.manual_seed(seed)
    x, w = 2 * torch.rand(COLUMNS, K) - 1, 2 * torch.rand(K) - 1
    blocks = x.reshape(COLUMNS, -1, 32)
    step = blocks.abs().amax(-1, keepdim=True) / 127
    rounded = ((blocks / step).round() * step).reshape(COLUMNS, K)
    a, b = spoil(rounded, w)
    return a @ b, x.double() @ w.double()


wrong = {
    "the last 4 terms left out": lambda seed: right(
        seed, lambda x, w: (x[:, :-4], w[:-4])
    ),
    "a block's scale of its neighbour": lambda seed: right(
        seed,
        lambda x, w: (x * torch.cat([torch.full((32,), 1.04), torch.ones(224)]), w),
    ),
    "everything times 1.01": lambda seed: right(seed, lambda x, w: (1.01 * x, w)),
}


def theirs(actual, expected):
    # one product at a time, as test-backend-ops asks for m = n = 1
    return nmse(actual[:1], expected[:1], max_nmse=5e-4)[0]


def ours(elements, scale):
    # 64 products at a time; a step of int8 is 1/127 of the largest of 32, √3 times the RMS
    unit = 3**0.5 / 254
    return bounds(
        dtype="float32",
        terms=K,
        rounded=1,
        rounded_to=unit,
        scale=scale,
        elements=elements,
    )
