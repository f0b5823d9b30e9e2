"""The defects of RoPE on a grid: axes exchanged, pairs, sections, angles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.mutants import (
    DomainMutant,
    Inputs,
    MutantGroup,
    Run,
    calling,
    computed,
    on_inputs,
)
from kernel_judge.definition import Definition

# places along each axis, pairs of each, theta: angles, float64 [places..., pairs]
Angles = Callable[[tuple[int, ...], list[int], float], torch.Tensor]


def _angles(
    grid: tuple[int, ...],
    pairs: list[int],
    theta: float,
    *,
    order: tuple[int, ...] = (),
    first: int = 0,
    of_all: bool = False,
    late: int = 0,
) -> torch.Tensor:
    """Return angles; the options are what is wrong."""
    parts, total = [], sum(pairs)
    start = 0
    for place, count in enumerate(pairs):
        axis = order[place] if order else place
        steps = torch.arange(count).double() + late
        share = (steps + start) / total if of_all else steps / count
        places = torch.arange(grid[axis]).double() + first
        shape = [1] * len(grid) + [count]
        shape[axis] = grid[axis]
        turns = places[:, None] * theta**-share
        parts.append(turns.view(shape).expand(*grid, count))
        start += count
    return torch.cat(parts, dim=-1)


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of heads on a grid."""
    constants = definition.constants
    is_video, theta = "temporal" in constants, float(constants["theta"])
    names = ("temporal", "height", "width")
    pairs = [constants[name] for name in names if name in constants]
    axes = tuple(range(len(pairs)))

    def with_angles(name: str, **wrong: Any) -> DomainMutant:
        factor = wrong.pop("factor", 1.0)
        half_angles = wrong.pop("short", False)

        def formula(inputs: Inputs) -> tuple[torch.Tensor, ...]:
            both = []
            for x in (inputs["q"], inputs["k"]):
                turns = _angles(tuple(x.shape[:-2]), pairs, theta * factor, **wrong)
                cos, sin = (
                    f(turns).float().to(x.device).unsqueeze(-2)
                    for f in (torch.cos, torch.sin)
                )
                if half_angles:
                    cos, sin = cos.bfloat16().float(), sin.bfloat16().float()
                both.append(_turned(x.float(), cos, sin, is_video))
            return tuple(both)

        return computed(definition, name, formula)

    def other_pairs(inputs: Inputs) -> tuple[torch.Tensor, ...]:
        both = []
        for x in (inputs["q"], inputs["k"]):
            turns = (
                _angles(tuple(x.shape[:-2]), pairs, theta).to(x.device).unsqueeze(-2)
            )
            cos, sin = turns.cos().float(), turns.sin().float()
            both.append(_turned(x.float(), cos, sin, not is_video))
        return tuple(both)

    def back(run: Run, inputs: dict[str, Any]) -> Any:
        def mirrored(x: torch.Tensor) -> torch.Tensor:
            wrong = x.clone()
            part = wrong[..., 1::2] if is_video else wrong[..., x.shape[-1] // 2 :]
            part.neg_()
            return wrong

        outputs = run(*(mirrored(x) for x in inputs.values()))
        return tuple(mirrored(x) for x in outputs)

    reversed_axes = axes[::-1]
    return (
        with_angles("axes of the grid in reverse", order=reversed_axes),
        with_angles("all by the last axis", order=(axes[-1],) * len(axes)),
        with_angles("all by the first axis", order=(axes[0],) * len(axes)),
        with_angles("places from 1", first=1),
        with_angles("frequencies of all pairs together", of_all=True),
        with_angles("frequencies from 1", late=1),
        with_angles("theta doubled", factor=2.0),
        with_angles("angles rounded to bfloat16", short=True),
        computed(definition, "other pairs", other_pairs),
        calling(definition, "turned back", back),
        on_inputs(definition, "keys not turned apart", lambda i: {"k": i["q"]}),
    )


def _turned(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, is_interleaved: bool
) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    if is_interleaved:
        first, second = x[..., 0::2], x[..., 1::2]
    parts = (first * cos - second * sin, second * cos + first * sin)
    return (
        torch.stack(parts, -1).flatten(-2) if is_interleaved else torch.cat(parts, -1)
    )


MUTANTS = (MutantGroup(mutants, "q k q_out k_out theta"),)
