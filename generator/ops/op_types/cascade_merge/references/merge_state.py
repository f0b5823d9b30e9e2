"""Attention over two parts of the keys, merged by their base-2 log-sum-exp."""

import math

import torch


@torch.no_grad()
def run(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    peak = torch.maximum(s_a, s_b)
    # Where neither part has a key, both weights are 0 and not exp2(-inf + inf).
    peak = torch.where(peak == -math.inf, 0.0, peak)
    weight_a, weight_b = torch.exp2(s_a - peak), torch.exp2(s_b - peak)
    total = weight_a + weight_b
    merged = v_a.float() * weight_a[..., None] + v_b.float() * weight_b[..., None]
    merged = merged / torch.where(total > 0, total, 1.0)[..., None]
    return merged.to(v_a.dtype), torch.log2(total) + peak
