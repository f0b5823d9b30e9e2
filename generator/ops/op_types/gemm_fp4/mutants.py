"""The defects of products of fp4: orders of codes and scales, factors lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from generator.ops.mutants import Change, DomainMutant, MutantGroup, on_inputs, shifted
from kernel_judge.definition import Definition


def _of_codes(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of codes and of the scales of any kind."""
    changes: dict[str, Change] = {}
    for name in ("a", "b"):
        changes |= {
            f"two codes of a byte of {name} exchanged": _changing(name, _exchanged),
            f"codes of {name} without a sign": _changing(name, _unsigned),
            f"6 in {name} taken for 4": _changing(name, _six_as_four),
            f"half in {name} taken for 0": _changing(name, _half_as_zero),
            f"bytes of {name} shifted": _changing(name, lambda v: shifted(v, 1)),
        }
        for axis, which in enumerate(("row", "block")):
            change = partial(shifted, axis=axis)
            changes[f"scales of the next {which} of {name}"] = _changing(
                f"{name}_scale", change
            )
    return tuple(on_inputs(definition, name, c) for name, c in changes.items())


def _changing(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    """Return the defect that changes one input."""
    return lambda i: {name: change(i[name])}


def _exchanged(codes: torch.Tensor) -> torch.Tensor:
    octets = codes.view(torch.uint8)
    return ((octets >> 4) | (octets << 4)).view(torch.int8)


def _unsigned(codes: torch.Tensor) -> torch.Tensor:
    return codes & 0x77


def _six_as_four(codes: torch.Tensor) -> torch.Tensor:
    return _replaced(codes, 7, 6)


def _half_as_zero(codes: torch.Tensor) -> torch.Tensor:
    return _replaced(codes, 1, 0)


def _replaced(codes: torch.Tensor, old: int, new: int) -> torch.Tensor:
    """Return the bytes with one magnitude of e2m1 replaced by another."""
    octets = codes.view(torch.uint8)
    octets_left = octets.clone()
    for shift in (0, 4):
        here = (octets >> shift) & 7 == old
        octets_left = torch.where(
            here, octets_left ^ ((old ^ new) << shift), octets_left
        )
    return octets_left.view(torch.int8)


def _of_factors(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of NVFP4's factor."""
    changes: dict[str, Change] = {
        "factor missing": lambda i: {"alpha": torch.ones_like(i["alpha"])},
        "factor inverted": lambda i: {"alpha": 1.0 / i["alpha"]},
    }
    return tuple(on_inputs(definition, name, c) for name, c in changes.items())


def _of_tiles(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of scales in tiles, none where they lie row by row."""
    if "padded_m" not in (definition.interface.input_specs["a_scale"].shape or ()):
        return ()
    changes: dict[str, Change] = {
        f"{name} read row by row": _changing(name, _linear_as_tiles)
        for name in ("a_scale", "b_scale")
    }
    return tuple(on_inputs(definition, name, c) for name, c in changes.items())


def _linear_as_tiles(scale: torch.Tensor) -> torch.Tensor:
    """Return scales that, read as tiles, are what lies there row by row."""
    rows, blocks = scale.shape
    bits = scale.view(torch.uint8).view(rows // 128, 4, 32, blocks // 4, 4)
    return bits.permute(0, 3, 2, 1, 4).reshape(rows, blocks).view(scale.dtype)


MUTANTS = (
    MutantGroup(_of_codes, "a b a_scale b_scale"),
    MutantGroup(_of_factors, "alpha"),
    MutantGroup(_of_tiles, "alpha"),
)
