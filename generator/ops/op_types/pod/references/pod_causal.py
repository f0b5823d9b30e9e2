"""One causal prefill over contiguous keys, and decodes over pages."""

import math

import torch


@torch.no_grad()
def run(
    q_p: torch.Tensor,
    k_p: torch.Tensor,
    v_p: torch.Tensor,
    q_d: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_last_page_len: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    output_p = prefill(q_p, k_p, v_p, sm_scale)

    page_size = k_cache.shape[1]
    # What a sequence without keys returns.
    output_d = torch.zeros_like(q_d)
    bounds = kv_indptr.tolist()
    last_page_lens = kv_last_page_len.tolist()
    for b in range(len(q_d)):
        if bounds[b] == bounds[b + 1]:
            continue
        pages = kv_indices[bounds[b] : bounds[b + 1]]
        # Only the first last_page_lens[b] slots of the last page are filled.
        kv_len = (len(pages) - 1) * page_size + last_page_lens[b]
        keys = k_cache[pages].flatten(0, 1)[:kv_len]
        values = v_cache[pages].flatten(0, 1)[:kv_len]
        # One query, which stands at the last key: it sees all of them.
        output_d[b] = prefill(q_d[b : b + 1], keys, values, sm_scale)[0]
    return output_p, output_d


def prefill(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sm_scale: float
) -> torch.Tensor:
    """Attend causally: the last query stands at the last key."""
    q_len, num_qo_heads, head_dim = q.shape
    kv_len, num_kv_heads, _ = k.shape
    group_size = num_qo_heads // num_kv_heads

    # Queries that stand before the first key see none, and give 0.
    output = torch.zeros_like(q)
    first = max(q_len - kv_len, 0)
    query_positions = torch.arange(first, q_len, device=q.device) + (kv_len - q_len)
    key_positions = torch.arange(kv_len, device=q.device)
    future = key_positions[None, :] > query_positions[:, None]  # [queries, kv_len]

    # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
    queries = q[first:].float().reshape(-1, num_kv_heads, group_size, head_dim)
    logits = torch.einsum("qhgd,khd->hgqk", queries, k.float()) * sm_scale
    logits.masked_fill_(future, -math.inf)
    attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), v.float())
    output[first:] = attended.flatten(1, 2).to(q.dtype)
    return output
