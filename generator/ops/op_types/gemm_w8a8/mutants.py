"""The defects of 8-bit products: scales of others, codes read as others, zeros lost."""

from __future__ import annotations

from collections.abc import Callable

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    MutantGroup,
    misread_as_e5m2,
    on_inputs,
    on_outputs,
    shifted,
    zeroed,
)
from kernel_judge.definition import Definition


def _of_codes(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of any product of codes."""
    changes: dict[str, Change] = {
        "last product missing": lambda i: {"x": zeroed(i["x"], 1, -1)},
        "columns of the weight shifted": lambda i: {"weight": shifted(i["weight"], 1)},
    }
    if definition.interface.input_specs["x"].dtype == "int8":
        changes["codes of activations without a sign"] = lambda i: {
            "x": i["x"].int().abs().clamp_max(127).to(torch.int8)
        }
        changes["weights clamped to four bits"] = lambda i: {
            "weight": i["weight"].clamp(-8, 7)
        }
        changes["-128 missing"] = lambda i: {"x": i["x"].clamp_min(-127)}
    else:
        for name in ("x", "weight"):
            changes[f"codes of {name} read as e5m2"] = _changing(name, misread_as_e5m2)
    return tuple(on_inputs(definition, name, c) for name, c in changes.items())


def _changing(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    """Return the defect that changes one input."""
    return lambda i: {name: change(i[name])}


def _next(scales: torch.Tensor) -> torch.Tensor:
    return shifted(scales, 0)


def _first(scales: torch.Tensor) -> torch.Tensor:
    return scales[:1].expand_as(scales).contiguous()


def _largest(scales: torch.Tensor) -> torch.Tensor:
    return scales.amax().expand_as(scales).contiguous()


def _of_scales(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of scales, those that their axes allow."""
    changes: dict[str, Change] = {
        "scale of x missing": lambda i: {"x_scale": torch.ones_like(i["x_scale"])},
        "scale of weight missing": lambda i: {
            "weight_scale": torch.ones_like(i["weight_scale"])
        },
    }
    for name in ("x_scale", "weight_scale"):
        changes[f"{name} inverted"] = _changing(name, torch.reciprocal)
        if definition.interface.input_specs[name].shape:
            changes[f"{name} of the next row"] = _changing(name, _next)
            changes[f"{name} of the first row"] = _changing(name, _first)
            changes[f"largest {name} for all"] = _changing(name, _largest)
    if not definition.interface.input_specs["x_scale"].shape:
        changes["scale of x for both"] = lambda i: {"weight_scale": i["x_scale"]}
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(
            definition,
            "output rounded to float8",
            lambda o, i: (o[0].to(torch.float8_e4m3fn).to(o[0].dtype),),
        ),
    )


def _of_zeros(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of zeros of rows."""
    changes: dict[str, Change] = {
        "zeros missing": lambda i: {"x_zero": torch.zeros_like(i["x_zero"])},
        "zeros added": lambda i: {"x_zero": -i["x_zero"]},
        "zero of the next row": _changing("x_zero", _next),
        "zero of the first row": _changing("x_zero", _first),
        "zeros are of unsigned codes": lambda i: {"x_zero": i["x_zero"] + 128},
    }
    return tuple(on_inputs(definition, name, c) for name, c in changes.items())


MUTANTS = (
    MutantGroup(_of_codes, "x weight N K"),
    MutantGroup(_of_scales, "x_scale weight_scale"),
    MutantGroup(_of_zeros, "x_zero"),
)
