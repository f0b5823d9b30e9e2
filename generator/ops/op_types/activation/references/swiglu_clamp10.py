"""Clipped SwiGLU of DeepSeek V4: SiLU of a limited gate, times a limited up projection."""

import torch

LIMIT = 10.0


@torch.no_grad()
def run(input: torch.Tensor) -> torch.Tensor:
    gate, up = input.float().chunk(2, dim=-1)
    # The gate has no lower limit.
    activated = torch.nn.functional.silu(gate.clamp(max=LIMIT))
    return (activated * up.clamp(-LIMIT, LIMIT)).to(input.dtype)
