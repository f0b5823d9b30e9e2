"""Attention over several parts of the keys, merged by their base-2 log-sum-exp."""

import math

import torch


@torch.no_grad()
def run(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    peak = s.amax(dim=1, keepdim=True)
    # Where no part has a key, the weights are 0 and not exp2(-inf + inf).
    peak = torch.where(peak == -math.inf, 0.0, peak)
    weights = torch.exp2(s - peak)  # [seq_len, num_states, num_heads]
    total = weights.sum(dim=1)
    merged = (v.float() * weights[..., None]).sum(dim=1)
    merged = merged / torch.where(total > 0, total, 1.0)[..., None]
    return merged.to(v.dtype), torch.log2(total) + peak[:, 0]
