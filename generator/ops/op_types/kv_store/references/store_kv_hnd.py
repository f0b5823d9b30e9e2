"""Keys and values of tokens written to their slots, in pages with heads first."""

import torch


@torch.no_grad()
def run(
    k: torch.Tensor,
    v: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    page_size = k_cache.shape[2]
    pages, places = slot_mapping // page_size, slot_mapping % page_size

    k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
    k_cache_out[pages, :, places] = k
    v_cache_out[pages, :, places] = v
    return k_cache_out, v_cache_out
