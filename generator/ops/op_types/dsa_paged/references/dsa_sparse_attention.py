"""Latent attention over the tokens that an indexer has chosen for each query."""

import math

import torch


@torch.no_grad()
def run(
    q_nope: torch.Tensor,
    q_pe: torch.Tensor,
    ckv_cache: torch.Tensor,
    kpe_cache: torch.Tensor,
    sparse_indices: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    num_tokens, num_qo_heads, _ = q_nope.shape

    # An index counts tokens: page * page_size + offset.
    ckv_tokens = ckv_cache.flatten(0, 1)
    kpe_tokens = kpe_cache.flatten(0, 1)

    # What a query returns for which no token was chosen.
    output = torch.zeros_like(q_nope)
    lse = torch.full(
        (num_tokens, num_qo_heads), -math.inf, dtype=torch.float32, device=q_nope.device
    )

    for t in range(num_tokens):
        # -1 is padding, wherever it stands.
        chosen = sparse_indices[t][sparse_indices[t] >= 0].long()
        if len(chosen) == 0:
            continue
        ckv = ckv_tokens[chosen].float()
        kpe = kpe_tokens[chosen].float()

        # All heads share the compressed KV, which is both key and value.
        logits = (q_nope[t].float() @ ckv.T + q_pe[t].float() @ kpe.T) * sm_scale
        output[t] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
        # Base 2: log2 of the sum of exponentials.
        lse[t] = logits.logsumexp(dim=-1) / math.log(2)
    return output, lse
