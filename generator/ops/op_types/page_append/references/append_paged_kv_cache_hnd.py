"""Keys and values written into the pages of their sequences, layout HND."""

import torch


@torch.no_grad()
def run(
    append_key: torch.Tensor,
    append_value: torch.Tensor,
    batch_indices: torch.Tensor,
    positions: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_last_page_len: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    page_size = k_cache.shape[2]
    # A sequence's pages stand one after the other in kv_indices.
    pages = kv_indices[kv_indptr[batch_indices] + positions // page_size]
    slots = positions % page_size

    # A page holds all tokens of its first head, then those of the next.
    k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
    k_cache_out[pages, :, slots] = append_key
    v_cache_out[pages, :, slots] = append_value
    return k_cache_out, v_cache_out
