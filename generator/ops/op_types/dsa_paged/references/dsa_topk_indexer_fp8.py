"""The indexer of sparse attention: score every token of a sequence, keep the best."""

import torch

TOPK = 2048


@torch.no_grad()
def run(
    q_index_fp8: torch.Tensor,
    k_index_cache_fp8: torch.Tensor,
    weights: torch.Tensor,
    seq_lens: torch.Tensor,
    block_table: torch.Tensor,
) -> torch.Tensor:
    batch_size, _, head_dim = q_index_fp8.shape
    num_pages, page_size = k_index_cache_fp8.shape[:2]

    # A page is one run of bytes: the fp8 keys of all its tokens, then their scales. The
    # last two axes of the cache only say how many bytes a token takes.
    pages = k_index_cache_fp8.reshape(num_pages, -1)
    key_bytes = page_size * head_dim

    topk_indices = torch.full(
        (batch_size, TOPK), -1, dtype=torch.int32, device=q_index_fp8.device
    )
    for b, seq_len in enumerate(seq_lens.tolist()):
        used = block_table[b, : (seq_len + page_size - 1) // page_size].long()
        own = pages[used]
        keys = own[:, :key_bytes].contiguous().view(torch.float8_e4m3fn)
        scales = own[:, key_bytes:].contiguous().view(torch.float32)
        k = keys.reshape(-1, head_dim)[:seq_len].float()
        k_scale = scales.flatten()[:seq_len]

        # The scale of q is part of the weights; that of k is positive.
        dots = q_index_fp8[b].float() @ k.T  # [num_index_heads, seq_len]
        scores = (weights[b].unsqueeze(1) * dots.relu()).sum(dim=0) * k_scale

        best = scores.topk(min(TOPK, seq_len)).indices
        # From the position in the sequence to the slot in the cache.
        slots = used[best // page_size] * page_size + best % page_size
        topk_indices[b, : len(slots)] = slots.int()
    return topk_indices
