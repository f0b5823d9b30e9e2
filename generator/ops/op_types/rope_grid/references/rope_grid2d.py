"""RoPE of an image's patches, dimension i with i + half the head, by row and column."""

import torch

THETA = 10000.0
HEIGHT = 20
WIDTH = 20


@torch.no_grad()
def run(q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, columns = q.shape[:2]

    def angles(places: int, pairs: int) -> torch.Tensor:
        steps = torch.arange(pairs, dtype=torch.float64, device=q.device) / pairs
        positions = torch.arange(places, dtype=torch.float64, device=q.device)
        return positions[:, None] * THETA**-steps

    by_row = angles(rows, HEIGHT)[:, None].expand(rows, columns, HEIGHT)
    by_column = angles(columns, WIDTH)[None].expand(rows, columns, WIDTH)
    turns = torch.cat((by_row, by_column), dim=-1).unsqueeze(2)
    cos, sin = turns.cos().float(), turns.sin().float()

    def turned(x: torch.Tensor) -> torch.Tensor:
        first, second = x.float().chunk(2, dim=-1)
        parts = (first * cos - second * sin, second * cos + first * sin)
        return torch.cat(parts, dim=-1).to(x.dtype)

    return turned(q), turned(k)
