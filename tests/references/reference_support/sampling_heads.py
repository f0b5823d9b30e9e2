"""The distributions that sampling is tested on: heads of few tokens, and even tails."""

from __future__ import annotations

import torch

# Probabilities are multiples of 2^-24 that add up to 1: all sums of theirs are exact.
_UNITS = 2**24
# heads of distributions, in 1/1024 each; the other tokens share what is left evenly
_HEADS = {
    "steps": (256, 192, 144, 96, 72, 56, 48, 40, 24, 16, 12, 4),
    "tied": (256, 128, 128, 128, 128, 64, 64, 32, 16),
    "even": tuple(38 - rank // 2 for rank in range(32)),
    "halves": (481, 479),
    # nothing is left: the other tokens have probability 0
    "zeros": (512, 256, 128, 64, 32, 16, 8, 8),
    "certain": (1024,),
    # of the vocabulary's last token, then its first one
    "ends": (512, 256, 128, 64),
    # the first three are half of all: shares of them are exact as well. The first two
    # are an odd number, and bfloat16 has the even ones of 512
    "half": (192, 173, 147, 96, 80, 72, 64, 56, 48, 40, 32, 16),
    # the first two, 343, and all three, 513, are none that bfloat16 has
    "thirds": (172, 171, 170, 96, 88, 80, 72, 64, 56, 48),
}
# the same in 1/2^24 each
_FINE_HEADS = {
    # of 2^-5 each in all formats that are shorter than float32
    "near": tuple(2**19 + 23 - rank for rank in range(24)),
    # to sort as many as most rows need, 256, misses two fifths of the mass
    "wide": (36000,) * 256 + (35000,) * 192,
    # 256 hold 0.50201, which bfloat16 makes 0.50391
    "edge": (32900,) * 256 + (28600,) * 2,
    # 2^-20 short of 1, as a softmax may be, and nothing else
    "short": (2**23, 2**23 - 16),
}


def falling_probabilities(name: str, vocab_size: int) -> torch.Tensor:
    """Return a distribution, the most probable token first: float32 [vocab_size].

    `zipf` falls as a language model's does, with the power -1.5 of the rank, and has
    no exact sums. Its values are roundings of single IEEE operations.
    """
    if name == "zipf":
        rank = torch.arange(4, vocab_size + 4, dtype=torch.float64)
        # whole numbers, whose sum below 2^53 is the same in every order
        parts = (2.0**40 / (rank * rank.sqrt())).floor()
        return (parts / parts.sum()).float()
    if name in _FINE_HEADS:
        head = torch.tensor(_FINE_HEADS[name])
    else:
        head = torch.tensor(_HEADS[name]) * (_UNITS // 1024)
    others, left = vocab_size - len(head), _UNITS - int(head.sum())
    if name == "short":
        left = 0
    tail = torch.full((others,), left // others)
    tail[: left % others] += 1
    # both parts are whole numbers up to 2^24: float32 holds them and their quotient
    return torch.cat([head, tail]).float() / _UNITS
