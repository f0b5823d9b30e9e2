"""Latents and rotary parts of tokens written to their slots, side by side."""

import torch


@torch.no_grad()
def run(
    latent: torch.Tensor,
    rope: torch.Tensor,
    kv_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> torch.Tensor:
    kv_cache_out = kv_cache.clone()
    kv_cache_out[slot_mapping] = torch.cat((latent, rope), dim=1)
    return kv_cache_out
