"""Blocks of keys and values copied to other places of their caches."""

import torch


@torch.no_grad()
def run(
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    sources: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
    k_cache_out[targets] = k_cache[sources]
    v_cache_out[targets] = v_cache[sources]
    return k_cache_out, v_cache_out
