"""Causal latent attention over a paged cache in 8 bits."""

import math

import torch


@torch.no_grad()
def run(
    q_nope: torch.Tensor,
    q_pe: torch.Tensor,
    ckv_cache: torch.Tensor,
    kpe_cache: torch.Tensor,
    ckv_scale: float,
    kpe_scale: float,
    qo_indptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_last_page_len: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    total_q, num_qo_heads, _ = q_nope.shape
    device = q_nope.device
    page_size = ckv_cache.shape[1]

    # What a query that sees no key returns.
    output = torch.zeros_like(q_nope)
    lse = torch.full(
        (total_q, num_qo_heads), -math.inf, dtype=torch.float32, device=device
    )

    qo_bounds = qo_indptr.tolist()
    kv_bounds = kv_indptr.tolist()
    last_page_lens = kv_last_page_len.tolist()
    for b in range(len(kv_bounds) - 1):
        qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
        kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
        if qo_start == qo_end or kv_start == kv_end:
            continue
        pages = kv_indices[kv_start:kv_end]
        # Only the first last_page_lens[b] slots of the last page are filled.
        kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
        ckv = ckv_cache[pages].flatten(0, 1)[:kv_len].float() * ckv_scale
        kpe = kpe_cache[pages].flatten(0, 1)[:kv_len].float() * kpe_scale

        # The last query stands at the last key. Queries that stand before the first
        # key see none: only the last kv_len queries take part.
        qo_start = max(qo_start, qo_end - kv_len)
        q_len = qo_end - qo_start
        query_positions = torch.arange(kv_len - q_len, kv_len, device=device)
        key_positions = torch.arange(kv_len, device=device)
        future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

        # All heads share the compressed KV, which is both key and value.
        nope = q_nope[qo_start:qo_end].float()
        pe = q_pe[qo_start:qo_end].float()
        logits = (nope @ ckv.T + pe @ kpe.T) * sm_scale
        logits.masked_fill_(future[:, None, :], -math.inf)  # [q_len, heads, kv_len]
        output[qo_start:qo_end] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
        # Base 2: log2 of the sum of exponentials.
        lse[qo_start:qo_end] = logits.logsumexp(dim=-1) / math.log(2)
    return output, lse
