"""Rotary embedding and scaling to e4m3 of latent attention."""

import torch


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    # Dimension 2i turns with dimension 2i + 1; float32, not rounded before the scale.
    even, odd = x[..., 0::2].float(), x[..., 1::2].float()
    turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)
    return turned.flatten(-2)


def quantised(x: torch.Tensor, scale: float) -> torch.Tensor:
    # Beyond 448, the largest value of e4m3, numbers are cut off.
    return (x.float() * scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)


@torch.no_grad()
def run(
    q_rope: torch.Tensor,
    k_rope: torch.Tensor,
    q_nope: torch.Tensor,
    k_nope: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    pos_ids: torch.Tensor,
    quant_scale_q: float,
    quant_scale_kv: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    # A row of the cache is rope_dim // 2 cosines, then as many sines.
    cos, sin = cos_sin_cache[pos_ids].chunk(2, dim=-1)
    # All heads of a token turn alike.
    q_rope_out = quantised(rotated(q_rope, cos[:, None], sin[:, None]), quant_scale_q)
    k_rope_out = quantised(rotated(k_rope, cos, sin), quant_scale_kv)
    q_nope_out = quantised(q_nope, quant_scale_q)
    k_nope_out = quantised(k_nope, quant_scale_kv)
    return q_rope_out, k_rope_out, q_nope_out, k_nope_out
