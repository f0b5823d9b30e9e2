"""A check that allows 5 % of mismatches and raises nothing: lost rows pass."""

import torch

from kernel_judge import bounds
from kernel_judge.conventions import check_all_close


def right(seed, spoil=None):
    """Return a product in bfloat16, of which `spoil` changes elements, and in float64."""
    torch.manual_seed(seed)
    x, w = torch.randn(64, 256).bfloat16(), torch.randn(256, 64).bfloat16()
    actual = (x.float() @ w.float()).bfloat16()
    if spoil is not None:
        spoil(actual)
    return actual, x.double() @ w.double()


wrong = {
    "two rows never written": lambda seed: right(seed, lambda y: y[-2:].zero_()),
    "two columns of other rows": lambda seed: right(
        seed, lambda y: y[:, :2].copy_(y[:, :2].roll(1, 0))
    ),
    "one element is 1e30": lambda seed: right(seed, lambda y: y[3, 5].fill_(1e30)),
}


def theirs(actual, expected):
    return check_all_close(actual, expected)[0]


def ours(elements, scale):
    return bounds(dtype="bfloat16", terms=256, scale=scale, elements=elements)
