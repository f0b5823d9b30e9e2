"""Random words of eight codes, and the codes in them, read byte by byte."""

from __future__ import annotations

import torch

from kernel_judge.inputs.seeded_inputs import Stream

# which of a word's eight columns lies in its nibbles, the lowest first, in AWQ's layout
AWQ_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)


def random_words(stream: Stream, rows: int, columns: int) -> torch.Tensor:
    """Return int32 [rows, columns] of random bits: row r is a window from 7·r on."""
    drawn = stream.integers(-(2**31), 2**31, 7 * (rows - 1) + columns)
    base = torch.tensor(drawn, dtype=torch.int32)
    return base.as_strided((rows, columns), (7, 1)).contiguous()


def nibbles(words: torch.Tensor) -> torch.Tensor:
    """Return the nibbles of each word, the lowest first: float64 [rows, columns, 8]."""
    octets = words.contiguous().view(torch.uint8).view(*words.shape, 4)
    halves = torch.stack((octets % 16, octets // 16), dim=3)
    return halves.flatten(2).double()


def awq_codes(words: torch.Tensor) -> torch.Tensor:
    """Return the codes of AWQ's words: float64 [rows, 8 · columns]."""
    in_order = nibbles(words)
    codes = torch.empty_like(in_order)
    codes[:, :, list(AWQ_COLUMNS)] = in_order
    return codes.flatten(1)
