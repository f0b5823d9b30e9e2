"""Places of scales in tiles of 128 rows and 4 blocks, and random bytes."""

from __future__ import annotations

import torch

from kernel_judge.inputs.seeded_inputs import Stream

TILE_ROWS, TILE_BLOCKS = 128, 4


def places(rows: int, blocks: int) -> torch.Tensor:
    """Return the place of each scale in the swizzled memory: int64 [rows, blocks].

    PTX ISA, tcgen05 scale factors: in a tile of 512 bytes row r and block c are at
    16 · (r mod 32) + 4 · (r div 32) + c; tiles of a row of tiles follow each other.
    """
    row, block = torch.arange(rows)[:, None], torch.arange(blocks)
    tiles = row // TILE_ROWS * (blocks // TILE_BLOCKS) + block // TILE_BLOCKS
    inner = row % TILE_ROWS
    return tiles * 512 + inner % 32 * 16 + inner // 32 * 4 + block % TILE_BLOCKS


def swizzled(scale: torch.Tensor) -> torch.Tensor:
    """Return scales [rows, blocks] of whole tiles in the order of swizzled memory."""
    memory = torch.empty_like(scale).flatten()
    memory[places(*scale.shape)] = scale
    return memory.view(scale.shape)


def random_bytes(stream: Stream, rows: int, columns: int) -> torch.Tensor:
    """Return int8 [rows, columns] of random bits: row r is a window from 7·r on."""
    base = stream.integer_tensor(-128, 128, 7 * (rows - 1) + columns).to(torch.int8)
    return base.as_strided((rows, columns), (7, 1)).contiguous()
