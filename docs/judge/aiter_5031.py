"""A mixture of experts held to atol=100: outputs of 1,900 to 6,300 hide a lost tail."""

import torch

from kernel_judge import bounds
from kernel_judge.conventions import check_all_close

TOKENS, K, COLUMNS, EXPERTS = 16, 512, 64, 4


def right(seed, left_out=0, weight=1.0):
    """Return the weighted sum of four experts in bfloat16, and in float64."""
    torch.manual_seed(seed)
    x = torch.randn(EXPERTS, TOKENS, K).bfloat16()
    w = (50 * torch.randn(EXPERTS, K, COLUMNS)).bfloat16()
    share = torch.rand(EXPERTS, TOKENS, 1).softmax(0)
    expected = (share.double() * (x.double() @ w.double())).sum(0)
    part = x[:, :, : K - left_out].float() @ w[:, : K - left_out].float()
    part[-1] *= weight
    return (share * part.bfloat16().float()).sum(0).bfloat16(), expected


wrong = {
    "the last 4 of 512 terms left out": lambda seed: right(seed, left_out=4),
    "one expert's weight 3 % off": lambda seed: right(seed, weight=1.03),
    "one expert's weight 10 % off": lambda seed: right(seed, weight=1.1),
}


def theirs(actual, expected):
    return check_all_close(actual, expected, rtol=0.01, atol=100.0)[0]


def ours(elements, scale):
    # each expert's sum is rounded before it is weighted
    return bounds(dtype="bfloat16", terms=K, rounded=1, scale=scale, elements=elements)
