"""Rotary embedding by positions, with the frequencies and the factor of YaRN."""

import math

import torch

ROPE_THETA = 150000
ROPE_SCALE = 32
BETA_FAST = 32
BETA_SLOW = 1
OLD_CONTEXT = 4096


def frequencies(head_size: int) -> torch.Tensor:
    steps = torch.arange(0, head_size, 2, dtype=torch.float64) / head_size
    plain = ROPE_THETA**-steps
    # The pair that turns a number of times in the old context; it need not be whole.
    fast, slow = (
        head_size * math.log(OLD_CONTEXT / (turns * 2.0 * math.pi)) / 2.0
        for turns in (BETA_FAST, BETA_SLOW)
    )
    first, last = fast / math.log(ROPE_THETA), slow / math.log(ROPE_THETA)
    pairs = torch.arange(head_size // 2, dtype=torch.float64)
    slowed = ((pairs - first) / (last - first)).clamp(0.0, 1.0)
    return (1.0 - slowed) * plain + slowed * plain / ROPE_SCALE


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
    # YaRN also makes all logits larger: a factor of cosines and sines.
    factor = 0.1 * math.log(ROPE_SCALE) + 1.0
    cos, sin = (factor * angles.cos()).float(), (factor * angles.sin()).float()
    return rotated(q, cos, sin), rotated(k, cos, sin)
