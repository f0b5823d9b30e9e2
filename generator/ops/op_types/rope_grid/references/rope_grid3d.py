"""RoPE of a video's patches, dimensions 2i and 2i + 1, by frame, row and column."""

import torch

THETA = 10000.0
TEMPORAL = 22
HEIGHT = 21
WIDTH = 21


@torch.no_grad()
def run(q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    frames, rows, columns = q.shape[:3]

    def angles(places: int, pairs: int) -> torch.Tensor:
        steps = torch.arange(pairs, dtype=torch.float64, device=q.device) / pairs
        positions = torch.arange(places, dtype=torch.float64, device=q.device)
        return positions[:, None] * THETA**-steps

    grid = (frames, rows, columns)
    by_frame = angles(frames, TEMPORAL)[:, None, None].expand(*grid, TEMPORAL)
    by_row = angles(rows, HEIGHT)[None, :, None].expand(*grid, HEIGHT)
    by_column = angles(columns, WIDTH)[None, None].expand(*grid, WIDTH)
    turns = torch.cat((by_frame, by_row, by_column), dim=-1).unsqueeze(3)
    cos, sin = turns.cos().float(), turns.sin().float()

    def turned(x: torch.Tensor) -> torch.Tensor:
        first, second = x[..., 0::2].float(), x[..., 1::2].float()
        parts = (first * cos - second * sin, second * cos + first * sin)
        return torch.stack(parts, dim=-1).flatten(-2).to(x.dtype)

    return turned(q), turned(k)
