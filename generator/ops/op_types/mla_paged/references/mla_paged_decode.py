"""Latent attention, one query a sequence, pages of several tokens."""

import math

import torch


@torch.no_grad()
def run(
    q_nope: torch.Tensor,
    q_pe: torch.Tensor,
    ckv_cache: torch.Tensor,
    kpe_cache: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_last_page_len: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    batch_size, num_qo_heads, _ = q_nope.shape
    page_size = ckv_cache.shape[1]

    # What a sequence without keys returns.
    output = torch.zeros_like(q_nope)
    lse = torch.full(
        (batch_size, num_qo_heads), -math.inf, dtype=torch.float32, device=q_nope.device
    )

    kv_bounds = kv_indptr.tolist()
    last_page_lens = kv_last_page_len.tolist()
    for b in range(batch_size):
        kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
        if kv_start == kv_end:
            continue
        pages = kv_indices[kv_start:kv_end]
        # Only the first last_page_lens[b] slots of the last page are filled.
        kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
        ckv = ckv_cache[pages].flatten(0, 1)[:kv_len].float()
        kpe = kpe_cache[pages].flatten(0, 1)[:kv_len].float()

        # All heads share the compressed KV, which is both key and value.
        logits = (q_nope[b].float() @ ckv.T + q_pe[b].float() @ kpe.T) * sm_scale
        output[b] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
        # Base 2: log2 of the sum of exponentials.
        lse[b] = logits.logsumexp(dim=-1) / math.log(2)
    return output, lse
