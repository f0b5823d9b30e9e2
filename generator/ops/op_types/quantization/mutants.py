"""The defects of quantising: scales of other blocks or roundings, codes misread."""

from __future__ import annotations

from collections.abc import Callable

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    on_inputs,
    on_outputs,
    shifted,
)
from generator.ops.op_types.quantization.formats import (
    Format,
    e2m1_codes,
    format_of,
    packed,
)
from kernel_judge.definition import Definition

# of a format and the magnitudes of blocks [M, blocks], the divisor of each
Scale = Callable[[Format, torch.Tensor], torch.Tensor]
# values divided by their scale, to what is rounded
Shape = Callable[[torch.Tensor], torch.Tensor]


def _swapped(codes: torch.Tensor) -> torch.Tensor:
    return (codes << 4) | ((codes >> 4) & 15)


def _ceiling(form: Format, largest: torch.Tensor) -> torch.Tensor:
    return torch.exp2(torch.ceil(torch.log2(largest / form.maximum)))


def _floor(form: Format, largest: torch.Tensor) -> torch.Tensor:
    return torch.exp2(torch.floor(torch.log2(largest / form.maximum)))


def _of_the_largest(form: Format, largest: torch.Tensor) -> torch.Tensor:
    """Return the exponent of the largest magnitude less that of the largest code."""
    exponent = torch.floor(torch.log2(largest))
    return torch.exp2(exponent - (2.0 if form.is_fp4 else 8.0))


def _of_rows(scale: Scale) -> Scale:
    return lambda form, largest: scale(
        form, largest.amax(dim=1, keepdim=True).expand_as(largest)
    )


def _towards_zero(values: torch.Tensor) -> torch.Tensor:
    """Return values a little nearer to zero than half a step of e4m3 or e2m1."""
    return values * (1.0 - 2.0**-4)


def _quantise(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of quantising."""
    form = format_of(definition)
    scale: Scale = _ceiling if form.is_mx else _quotient
    defects: list[DomainMutant] = [
        on_outputs(definition, "scales of the next block", _next_scales),
        _instead(definition, "one scale a row", _of_rows(scale)),
        _instead(definition, "half of the largest code", _halved(scale)),
        _instead(definition, "rounded towards zero", scale, _towards_zero),
        _instead(definition, "signs lost", scale, torch.abs),
        _instead(definition, "multiplied by the scale", _inverse(scale)),
    ]
    if form.is_mx:
        defects += [
            _instead(definition, "exponent rounded down", _floor),
            _instead(definition, "exponent of the largest value", _of_the_largest),
            on_outputs(definition, "bias of 128", lambda o, i: (o[0], o[1] + 1)),
        ]
    if form.is_fp4:
        defects += [
            on_outputs(
                definition,
                "halves of a byte swapped",
                lambda o, i: (_swapped(o[0]), o[1]),
            ),
        ]
    if form.is_global:
        defects += [
            on_inputs(
                definition, "global scale ignored", lambda i: {"global_scale": 1.0}
            ),
            on_inputs(
                definition,
                "divided by the global scale",
                lambda i: {"global_scale": 1.0 / i["global_scale"]},
            ),
        ]
    return tuple(defects)


def _quotient(form: Format, largest: torch.Tensor) -> torch.Tensor:
    return largest / form.maximum


def _halved(scale: Scale) -> Scale:
    return lambda form, largest: 2.0 * scale(form, largest)


def _inverse(scale: Scale) -> Scale:
    return lambda form, largest: 1.0 / scale(form, largest)


def _next_scales(outputs: Outputs, inputs: Inputs) -> Outputs:
    return (outputs[0], shifted(outputs[1], 1))


def _instead(
    definition: Definition, name: str, scale: Scale, shape: Shape = torch.clone
) -> DomainMutant:
    """Return the mutant that divides by another scale, or rounds other values."""

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        form = format_of(definition)
        x = next(iter(inputs.values())).float() * inputs.get("global_scale", 1.0)
        blocks = x.view(len(x), -1, form.block)
        divisor = scale(form, blocks.abs().amax(dim=2).clamp(min=1e-10))
        dtype = outputs[1].dtype
        if form.is_mx:
            exponents = torch.log2(divisor).round().clamp(-127, 127)
            divisor, scales = torch.exp2(exponents), exponents + 127
            scales = scales.to(torch.uint8).view(dtype)
        else:
            scales = divisor.to(dtype)
            divisor = scales.float() if form.is_global else divisor
        codes = shape((blocks / divisor[:, :, None]).nan_to_num(0.0)).flatten(1)
        if form.is_fp4:
            return (packed(e2m1_codes(codes)), scales)
        limit = form.maximum
        return (codes.clamp(-limit, limit).to(outputs[0].dtype), scales)

    return on_outputs(definition, name, spoil)


def _dequantise(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of the way back."""
    form = format_of(definition)
    changes: dict[str, Change] = {
        "halves of a byte swapped": lambda i: {"quantized": _swapped(i["quantized"])},
        "signs lost": lambda i: {"quantized": i["quantized"] & 0x77},
        "codes of the next byte": lambda i: {"quantized": shifted(i["quantized"], 1)},
        "scales of the next block": lambda i: {"scales": shifted(i["scales"], 1)},
        "one scale a row": lambda i: {
            "scales": i["scales"][:, :1].expand_as(i["scales"]).contiguous()
        },
    }
    if form.is_mx:
        changes["bias of 128"] = lambda i: {"scales": i["scales"] - 1}
    if form.is_global:
        changes["global scale ignored"] = lambda i: {"global_scale": 1.0}
        changes["divided by the global scale"] = lambda i: {
            "global_scale": 1.0 / i["global_scale"]
        }
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


MUTANTS = (
    MutantGroup(_quantise, "x x_q x_s num_blocks"),
    MutantGroup(_quantise, "input quantized scales num_blocks"),
    MutantGroup(_dequantise, "output quantized scales num_blocks"),
)
