"""Rotary embedding by positions, with the frequencies of Llama 3.1."""

import math

import torch

ROPE_THETA = 500000
ROPE_SCALE = 8
LOW_FREQ = 1
HIGH_FREQ = 4
OLD_CONTEXT = 8192


def frequencies(head_size: int) -> torch.Tensor:
    steps = torch.arange(0, head_size, 2, dtype=torch.float64) / head_size
    plain = ROPE_THETA**-steps
    # What turns less than once in the old context is slowed down, what turns four times
    # and more is not, and what lies between is mixed of both.
    turns = OLD_CONTEXT * plain / (2.0 * math.pi)
    kept = ((turns - LOW_FREQ) / (HIGH_FREQ - LOW_FREQ)).clamp(0.0, 1.0)
    return kept * plain + (1.0 - kept) * plain / ROPE_SCALE


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    # Dimension i turns with dimension i + head_size // 2, not with its neighbour.
    first, second = x.float().chunk(2, dim=-1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return turned.to(x.dtype)


@torch.no_grad()
def run(
    q: torch.Tensor, k: torch.Tensor, pos_ids: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    # float64: at position 100,000 an angle in float32 is off by 4e-3.
    angles = pos_ids.double()[:, None] * frequencies(q.shape[-1]).to(q.device)
    # All heads of a token turn alike: [num_tokens, 1, head_size // 2].
    angles = angles[:, None]
    cos, sin = angles.cos().float(), angles.sin().float()
    return rotated(q, cos, sin), rotated(k, cos, sin)
