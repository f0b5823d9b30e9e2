"""Latents and their rotary parts written into the pages of their sequences."""

import torch


@torch.no_grad()
def run(
    append_ckv: torch.Tensor,
    append_kpe: torch.Tensor,
    batch_indices: torch.Tensor,
    positions: torch.Tensor,
    ckv_cache: torch.Tensor,
    kpe_cache: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_last_page_len: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    page_size = ckv_cache.shape[1]
    # A sequence's pages stand one after the other in kv_indices.
    pages = kv_indices[kv_indptr[batch_indices] + positions // page_size]
    slots = positions % page_size

    ckv_cache_out, kpe_cache_out = ckv_cache.clone(), kpe_cache.clone()
    ckv_cache_out[pages, slots] = append_ckv
    kpe_cache_out[pages, slots] = append_kpe
    return ckv_cache_out, kpe_cache_out
