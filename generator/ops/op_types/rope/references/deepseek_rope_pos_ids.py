"""Rotary embedding by positions, with the frequencies of DeepSeek's YaRN."""

import math

import torch

ROPE_THETA = 10000
ROPE_SCALE = 40
BETA_FAST = 32
BETA_SLOW = 1
OLD_CONTEXT = 4096


def frequencies(head_size: int) -> torch.Tensor:
    steps = torch.arange(0, head_size, 2, dtype=torch.float64) / head_size
    plain = ROPE_THETA**-steps
    # The pair that turns a number of times in the old context.
    fast, slow = (
        head_size * math.log(OLD_CONTEXT / (turns * 2.0 * math.pi)) / 2.0
        for turns in (BETA_FAST, BETA_SLOW)
    )
    # Both ends are whole pairs.
    first, last = (
        math.floor(fast / math.log(ROPE_THETA)),
        math.ceil(slow / math.log(ROPE_THETA)),
    )
    pairs = torch.arange(head_size // 2, dtype=torch.float64)
    slowed = ((pairs - first) / (last - first)).clamp(0.0, 1.0)
    return (1.0 - slowed) * plain + slowed * plain / ROPE_SCALE


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    # Dimension 2i turns with dimension 2i + 1, not with the one half a head away.
    even, odd = x[..., 0::2].float(), x[..., 1::2].float()
    turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)
    return turned.flatten(-2).to(x.dtype)


@torch.no_grad()
def run(
    q: torch.Tensor, k: torch.Tensor, pos_ids: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    # float64: at position 100,000 an angle in float32 is off by 4e-3.
    angles = pos_ids.double()[:, None] * frequencies(q.shape[-1]).to(q.device)
    # All heads of a token turn alike: [num_tokens, 1, head_size // 2].
    angles = angles[:, None]
    # YaRN's factor is part of the softmax scale, not of cosines and sines.
    cos, sin = angles.cos().float(), angles.sin().float()
    return rotated(q, cos, sin), rotated(k, cos, sin)
