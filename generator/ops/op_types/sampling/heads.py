"""Distributions for sampling: a head of some tokens, and a uniform tail."""

from __future__ import annotations

import torch

# Probabilities are multiples of 2^-24 that add up to 1, so that all sums are exact.
_UNITS = 2**24
# heads in units of 1/1024; the other tokens share the rest evenly
_HEADS = {
    "steps": (256, 192, 144, 96, 72, 56, 48, 40, 24, 16, 12, 4),
    "tied": (256, 128, 128, 128, 128, 64, 64, 32, 16),
    "even": tuple(38 - rank // 2 for rank in range(32)),
    "halves": (481, 479),
    # the other tokens have probability 0
    "zeros": (512, 256, 128, 64, 32, 16, 8, 8),
    "certain": (1024,),
    # as much as all others together
    "one": (512,),
    # the first two are the last and the first token of the vocabulary
    "ends": (512, 256, 128, 64),
    # the first three sum to 1/2, so that shares of them are exact. The first two sum to
    # 365/1024, which bfloat16 does not hold
    "half": (192, 173, 147, 96, 80, 72, 64, 56, 48, 40, 32, 16),
    # the sums of the first two, 343, and of three, 513, are not bfloat16 values
    "thirds": (172, 171, 170, 96, 88, 80, 72, 64, 56, 48),
}
# heads in units of 2^-24
_FINE_HEADS = {
    # each is 2^-5 when rounded to a format shorter than float32
    "near": tuple(2**19 + 23 - rank for rank in range(24)),
    # sorting only 256 tokens misses two fifths of the mass
    "wide": (36000,) * 256 + (35000,) * 192,
    # the first 256 hold 0.50201, which bfloat16 rounds to 0.50391
    "edge": (32900,) * 256 + (28600,) * 2,
    # half of the mass in tokens of 2^-14; and all of it in tokens of 2^-13
    "deep": (2**23,) + (2**10,) * 8192,
    "flat": (2**11,) * 8192,
    # 521 tokens, none as probable as another: what keeps 128 or 512 of them shows
    "distinct": tuple(30_000 - rank for rank in range(521)),
    # sums to 1 - 2^-20, as a softmax may; the other tokens have probability 0
    "short": (2**23, 2**23 - 16),
}


def falling_probabilities(name: str, vocab_size: int) -> torch.Tensor:
    """Return a distribution in descending order: float32 [vocab_size].

    `zipf` falls with the power -1.5 of the rank, as in language models; its sums are not
    exact. Single IEEE operations give the same bits on every machine.
    """
    if name == "zipf":
        rank = torch.arange(4, vocab_size + 4, dtype=torch.float64)
        # integers: their sum, below 2^53, is exact in every order
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
    # integers up to 2^24: float32 holds them and their quotients
    return torch.cat([head, tail]).float() / _UNITS
