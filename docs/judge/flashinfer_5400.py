"""Two decode kernels in float16 held to 1e-3: one rounds rotated q and k, and weights."""

import torch

from kernel_judge import bounds
from kernel_judge.conventions import assert_close

HEADS, KEYS, DIM = 32, 54, 256


def right(seed, gain=1.0, shift=0.0):
    """Return attention that rounds on the way to float16, and one that does not."""
    torch.manual_seed(seed)
    q, k = 2 * torch.randn(HEADS, DIM), torch.randn(HEADS, KEYS, DIM)
    v = torch.randn(HEADS, KEYS, DIM).half().float()
    logits = torch.einsum("hd,hkd->hk", q, k) / DIM**0.5
    expected = torch.einsum("hk,hkd->hd", logits.softmax(-1), v).half()
    # rotated q and k, and unnormalised weights, are rounded for the tensor cores
    logits = torch.einsum("hd,hkd->hk", q.half().float(), k.half().float()) / DIM**0.5
    weights = (logits - logits.amax(-1, keepdim=True)).exp()
    total = torch.einsum("hk,hkd->hd", weights.half().float(), v)
    return (gain * total / weights.sum(-1, keepdim=True) + shift).half(), expected


wrong = {
    "everything times 1.0005": lambda seed: right(seed, gain=1.0005),
    "everything times 0.999": lambda seed: right(seed, gain=0.999),
    "0.0002 added to all": lambda seed: right(seed, shift=0.0002),
}


def theirs(actual, expected):
    return assert_close(actual.float(), expected.float(), rtol=1e-3, atol=1e-3)[0]


def ours(elements, scale):
    # logits have an RMS of 2: q's and k's rounding move a weight as 2·2² of its own do
    return bounds(
        dtype="float16",
        terms=KEYS,
        rounded=9,
        scale=scale,
        elements=elements,
        against="kernel",
    )
