"""Gradients of softmax(q k^T * sm_scale) v with a causal mask, heads in groups."""

import torch


@torch.no_grad()
def run(
    grad_output: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    output: torch.Tensor,
    lse: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    batch, length, heads, dim = q.shape
    kv_heads = k.shape[2]
    grouped = (batch, length, kv_heads, heads // kv_heads, dim)
    queries, grads = q.float().view(grouped), grad_output.float().view(grouped)
    keys, values = k.float(), v.float()

    # b: sequence, h: head of keys, g: query head of it, i: query, j: key
    logits = torch.einsum("bihgd,bjhd->bhgij", queries, keys) * sm_scale
    sums = lse.view(batch, kv_heads, heads // kv_heads, length, 1)
    is_later = torch.ones(length, length, device=q.device).triu(1).bool()
    weights = (logits - sums).exp().masked_fill(is_later, 0.0)

    grad_v = torch.einsum("bhgij,bihgd->bjhd", weights, grads)
    slopes = torch.einsum("bihgd,bjhd->bhgij", grads, values)
    # What the softmax's sum takes away: the product of output and its gradient.
    along = (grads * output.float().view(grouped)).sum(dim=-1)
    taken = along.permute(0, 2, 3, 1).unsqueeze(-1)
    grad_logits = weights * (slopes - taken) * sm_scale
    grad_q = torch.einsum("bhgij,bjhd->bihgd", grad_logits, keys)
    grad_k = torch.einsum("bhgij,bihgd->bjhd", grad_logits, queries)
    return (
        grad_q.reshape(q.shape).to(q.dtype),
        grad_k.to(k.dtype),
        grad_v.to(v.dtype),
    )
