"""rope_grid: heads of patches turned by their row and column, and by their frame.

The oracle multiplies complex numbers in float64, one axis of the grid after the other.
FlashInfer turns by cosines and sines, which its callers make of the grid.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.rope_grid.relations import grid_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_TERMS = (
    "cosines and sines are rounded to float32 of angles that are float64; two products of "
    "4 at most leave 2^-24 each where they cancel"
)
TOLERANCES = tuple(
    Override(
        output,
        Tolerance(rtol=rtol, atol=atol, nmse=1.6e-5),
        f"one rounding to bfloat16: half an ulp is 2^-8 of a value at most{more}; {_TERMS}",
        source=source,
    )
    for output in ("q_out", "k_out")
    for source, rtol, atol, more in (
        ("oracle", 4e-3, 2e-6, ""),
        (None, 8e-3, 4e-6, ", or neighbours of two such"),
    )
)


def _axes(definition: Definition, *sizes: int) -> dict[str, int]:
    return dict(zip(_sizes(definition), sizes[-len(_sizes(definition)) :], strict=True))


def _sizes(definition: Definition) -> tuple[str, ...]:
    is_video = "temporal" in definition.constants
    return ("frames", "rows", "columns") if is_video else ("rows", "columns")


def cases(definition: Definition) -> list[Case]:
    """Return one patch, grids that are no square, long sides."""
    shapes = {
        "one-patch": ("small", 1, 1, 1),
        "wide": ("small", 2, 3, 7),
        "high": ("small", 3, 5, 2),
        "one-row": ("small", 1, 1, 70),
        "one-column": ("small", 1, 70, 1),
        "long-video": ("medium", 33, 4, 5),
        "past-limits": (LIMITS, 19, 131, 137),
        "video": ("large", 21, 30, 52),
    }
    return [
        Case(name, size, _axes(definition, *sizes))
        for name, (size, *sizes) in shapes.items()
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return q and k, bfloat16 [(frames,) rows, columns, num_heads, head_dim]."""
    lengths = {**definition.axes, **case.axes}
    return {
        name: stream.child(name).values(shape_of(spec, lengths)).to(torch.bfloat16)
        for name, spec in definition.interface.input_specs.items()
    }


def _pairs(definition: Definition) -> list[int]:
    """Return how many pairs turn by each axis of the grid."""
    names = ("temporal", "height", "width")
    return [definition.constants[n] for n in names if n in definition.constants]


def oracle(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return turned queries and keys in float64."""
    is_video, theta = "temporal" in definition.constants, definition.constants["theta"]
    results = []
    for x in (inputs["q"].double(), inputs["k"].double()):
        half = x.shape[-1] // 2
        real, imaginary = (x[..., :half], x[..., half:])
        if is_video:
            real, imaginary = x[..., 0::2], x[..., 1::2]
        heads = torch.complex(real.contiguous(), imaginary.contiguous())
        start = 0
        for axis, count in enumerate(_pairs(definition)):
            steps = torch.arange(count, dtype=torch.float64, device=x.device)
            places = torch.arange(x.shape[axis], dtype=torch.float64, device=x.device)
            turns = torch.outer(places, torch.exp(-steps / count * _log(theta)))
            shape = [1] * heads.dim()
            shape[axis], shape[-1] = turns.shape
            part = heads[..., start : start + count]
            unit = torch.polar(torch.ones_like(turns), turns)
            heads[..., start : start + count] = part * unit.view(shape)
            start += count
        both = (heads.real, heads.imag)
        joined = torch.stack(both, -1).flatten(-2) if is_video else torch.cat(both, -1)
        results.append(joined)
    return tuple(results)


def _log(theta: float) -> torch.Tensor:
    return torch.tensor(float(theta), dtype=torch.float64).log()


def _angles(definition: Definition, x: torch.Tensor) -> torch.Tensor:
    """Return each patch's angles, float64 [patches, head_dim / 2]."""
    grid = x.shape[:-2]
    parts = []
    for axis, count in enumerate(_pairs(definition)):
        steps = torch.arange(count, dtype=torch.float64, device=x.device) / count
        places = torch.arange(grid[axis], dtype=torch.float64, device=x.device)
        shape = [1] * len(grid) + [count]
        shape[axis] = grid[axis]
        turns = places[:, None] * definition.constants["theta"] ** -steps
        parts.append(turns.view(shape).expand(*grid, count))
    return torch.cat(parts, dim=-1).flatten(0, -2)


_MADE = "inputs rewritten: cosines and sines are made of the grid"


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return FlashInfer's rotation by a cache, of heads that it is compiled for."""
    if definition.axes["head_dim"] not in (64, 128, 256, 512):
        return (Backend("", limit="FlashInfer has heads of 64, 128, 256 and 512"),)
    return (Backend("", rewrites=_MADE),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, ...]:
    """Return both from a cache with a row for each patch."""
    import flashinfer

    q, k = inputs["q"], inputs["k"]
    turns = _angles(definition, q)
    q_out, k_out = flashinfer.apply_rope_with_cos_sin_cache(
        torch.arange(len(turns), device=q.device),
        q.flatten(0, -3).flatten(1),
        k.flatten(0, -3).flatten(1),
        definition.axes["head_dim"],
        torch.cat((turns.cos(), turns.sin()), dim=1).float(),
        is_neox="temporal" not in definition.constants,
    )
    return q_out.view_as(q), k_out.view_as(k)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=grid_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
    },
)
