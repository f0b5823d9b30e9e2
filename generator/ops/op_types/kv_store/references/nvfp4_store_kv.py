"""Keys and values of tokens as e2m1 codes with scales of blocks, in their slots."""

import torch

BLOCK = 16
MAX = 6.0
MAX_SCALE = 448.0


@torch.no_grad()
def run(
    k: torch.Tensor,
    v: torch.Tensor,
    k_cache: torch.Tensor,
    k_scale_cache: torch.Tensor,
    v_cache: torch.Tensor,
    v_scale_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    k_scale: float,
    v_scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    def stored(
        rows: torch.Tensor, cache: torch.Tensor, scales: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # Of a Python number CUDA multiplies by the inverse, which moves ties.
        divisor, largest_code = torch.tensor((scale, MAX), device=rows.device)
        blocks = (rows.float() / divisor).unflatten(-1, (-1, BLOCK))
        largest = blocks.abs().amax(dim=-1)
        units = (largest / largest_code).clamp(max=MAX_SCALE).to(torch.float8_e4m3fn)
        # Codes are of the scale as it is stored; where it is zero they are zeros.
        unit = units.float()[..., None]
        scaled = torch.where(unit == 0, torch.zeros_like(blocks), blocks / unit)
        codes = e2m1(scaled).flatten(-2)
        # The first of two elements is in the lower half of a byte.
        packed = codes[..., 0::2] | (codes[..., 1::2] << 4)
        cache_out, scales_out = cache.clone(), scales.clone()
        cache_out[slot_mapping] = packed.view(torch.int8)
        # Bytes are moved: an index assignment does not know float8.
        scales_out.view(torch.uint8)[slot_mapping] = units.view(torch.uint8)
        return cache_out, scales_out

    return (
        *stored(k, k_cache, k_scale_cache, k_scale),
        *stored(v, v_cache, v_scale_cache, v_scale),
    )


def e2m1(values: torch.Tensor) -> torch.Tensor:
    magnitude = values.abs().clamp(max=MAX)
    # The step is 0.5 below 2, 1 below 4 and 2 above; round() takes ties to even.
    low = (magnitude * 2).round()
    middle = magnitude.round() + 2
    high = (magnitude / 2).round() + 4
    codes = torch.where(magnitude < 2, low, torch.where(magnitude < 4, middle, high))
    return codes.to(torch.uint8) | (torch.signbit(values).to(torch.uint8) << 3)
