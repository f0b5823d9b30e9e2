"""Latent attention, one query a sequence, pages of one token."""

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
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    batch_size, num_qo_heads, _ = q_nope.shape

    # What a sequence without keys returns.
    output = torch.zeros_like(q_nope)
    lse = torch.full(
        (batch_size, num_qo_heads), -math.inf, dtype=torch.float32, device=q_nope.device
    )

    kv_bounds = kv_indptr.tolist()
    for b in range(batch_size):
        kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
        if kv_start == kv_end:
            continue
        pages = kv_indices[kv_start:kv_end]
        ckv = ckv_cache[pages, 0].float()  # [kv_len, head_dim_ckv]
        kpe = kpe_cache[pages, 0].float()  # [kv_len, head_dim_kpe]

        # All heads share the compressed KV, which is both key and value.
        logits = (q_nope[b].float() @ ckv.T + q_pe[b].float() @ kpe.T) * sm_scale
        output[b] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
        # Base 2: log2 of the sum of exponentials.
        lse[b] = logits.logsumexp(dim=-1) / math.log(2)
    return output, lse
