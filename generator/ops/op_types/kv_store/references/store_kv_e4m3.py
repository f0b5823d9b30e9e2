"""Keys and values of tokens divided by their scales, rounded to e4m3, in their slots."""

import torch

E4M3_MAX = 448.0


@torch.no_grad()
def run(
    k: torch.Tensor,
    v: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    k_scale: float,
    v_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    def stored(cache: torch.Tensor, rows: torch.Tensor, scale: float) -> torch.Tensor:
        # Of a Python number CUDA multiplies by the inverse, which moves ties of float8.
        divisor = torch.tensor(scale, dtype=torch.float32, device=rows.device)
        scaled = (rows.float() / divisor).clamp(-E4M3_MAX, E4M3_MAX)
        codes = scaled.to(torch.float8_e4m3fn)
        out = cache.clone()
        # Bytes are moved: an index assignment does not know float8.
        out.view(torch.uint8)[slot_mapping] = codes.view(torch.uint8)
        return out

    return stored(k_cache, k, k_scale), stored(v_cache, v, v_scale)
