"""The defects of products with int4 weights: orders of codes, zeros, groups of scales."""

from __future__ import annotations

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    MutantGroup,
    on_inputs,
    shifted,
    zeroed,
)
from kernel_judge.definition import Definition

_LOW = 0x0F0F0F0F


def _of_words(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of words of eight codes."""
    changes: dict[str, Change] = {
        "last product missing": lambda i: {"x": zeroed(i["x"], 1, -1)},
        "two codes of a byte exchanged": lambda i: {
            "qweight": _exchanged(i["qweight"]),
        },
        "two zeros of a byte exchanged": lambda i: {"qzeros": _exchanged(i["qzeros"])},
        "zeros are 8": lambda i: {"qzeros": torch.full_like(i["qzeros"], _all(8))},
        "zeros are 7": lambda i: {"qzeros": torch.full_like(i["qzeros"], _all(7))},
        "zeros of the next group": lambda i: {"qzeros": shifted(i["qzeros"], 0)},
        "zeros of the next word": lambda i: {"qzeros": shifted(i["qzeros"], 1)},
        "scales of the next group": lambda i: {"scales": shifted(i["scales"], 0)},
        "scales of the next column": lambda i: {"scales": shifted(i["scales"], 1)},
        "scales of the first group": lambda i: {
            "scales": i["scales"][:1].expand_as(i["scales"]).contiguous()
        },
        "rows of words shifted": lambda i: {"qweight": shifted(i["qweight"], 0)},
        "words shifted": lambda i: {"qweight": shifted(i["qweight"], 1)},
        "codes above 7 negative": lambda i: {"qweight": i["qweight"] ^ _all(8)},
    }
    return tuple(on_inputs(definition, name, c) for name, c in changes.items())


def _exchanged(words: torch.Tensor) -> torch.Tensor:
    return ((words & _LOW) << 4) | ((words >> 4) & _LOW)


def _all(code: int) -> int:
    """Return the word, as int32, that has one code eight times."""
    word = code * 0x11111111
    return word - 2**32 if word >= 2**31 else word


def _of_bytes(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of bytes of two codes."""

    def factors(scales: torch.Tensor, zeros: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"scales_and_zeros": torch.stack((scales, zeros), dim=2)}

    changes: dict[str, Change] = {
        "last product missing": lambda i: {"x": zeroed(i["x"], 1, -1)},
        "two codes of a byte exchanged": lambda i: {
            "codes": _exchanged(i["codes"].view(torch.int32)).view(torch.int8)
        },
        "codes with a sign": lambda i: {"codes": i["codes"] ^ -0x78},
        "zeros missing": lambda i: factors(
            i["scales_and_zeros"][:, :, 0],
            torch.zeros_like(i["scales_and_zeros"][:, :, 1]),
        ),
        "scales and zeros exchanged": lambda i: {
            "scales_and_zeros": i["scales_and_zeros"].flip(2).contiguous()
        },
        "factors of the next group": lambda i: {
            "scales_and_zeros": shifted(i["scales_and_zeros"], 0)
        },
        "factors of the next column": lambda i: {
            "scales_and_zeros": shifted(i["scales_and_zeros"], 1)
        },
        "bytes shifted": lambda i: {"codes": shifted(i["codes"], 1)},
    }
    return tuple(on_inputs(definition, name, c) for name, c in changes.items())


MUTANTS = (
    MutantGroup(_of_words, "x qweight qzeros scales"),
    MutantGroup(_of_bytes, "x codes scales_and_zeros"),
)
