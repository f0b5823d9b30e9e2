"""Reference tests of op_type rope_grid.

Rendered: don't edit. `gen-tests --op-type rope_grid` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from generator.ops.op_types.rope_grid.relations import grid_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.rope_grid.relations

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


# ---- the interfaces

INTERFACE_ROPE_GRID2D_NEOX_STYLE = Interface(
    inputs={
        "q": "bfloat16[rows, columns, num_heads, head_dim]",
        "k": "bfloat16[rows, columns, num_heads, head_dim]",
    },
    outputs={
        "q_out": "bfloat16[rows, columns, num_heads, head_dim]",
        "k_out": "bfloat16[rows, columns, num_heads, head_dim]",
    },
)
INTERFACE_ROPE_GRID3D_GPTJ_STYLE = Interface(
    inputs={
        "q": "bfloat16[frames, rows, columns, num_heads, head_dim]",
        "k": "bfloat16[frames, rows, columns, num_heads, head_dim]",
    },
    outputs={
        "q_out": "bfloat16[frames, rows, columns, num_heads, head_dim]",
        "k_out": "bfloat16[frames, rows, columns, num_heads, head_dim]",
    },
)

# ---- the tests


class RopeGridTests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of rope_grid share."""

    op_type = "rope_grid"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.
# Reasons in short; `TOLERANCES`, or the module of bounds named above, derives them in full:
# (1) one rounding to bfloat16.


# RoPE of an image's patches: dimension i of each head turns with dimension i + 36. The
# first 18 pairs turn by the row, the others by the column. Of n pairs of an axis pair i
# turns by 10000 ** (-i / n) radians a place. In float32, rounded once to bfloat16.
# model:qwen3-vl-8b-vision
# Tolerances:
#   output  source      rtol   atol   NMSE     reason
#   q_out   oracle      0.004  2e-06  1.6e-05  (1)
#   q_out   flashinfer  0.008  4e-06  1.6e-05  (1)
#   k_out   oracle      0.004  2e-06  1.6e-05  (1)
#   k_out   flashinfer  0.008  4e-06  1.6e-05  (1)
def reference_rope_grid2d_neox_style_y18_x18_d72():
    import torch

    THETA = 10000.0
    HEIGHT = 18
    WIDTH = 18


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

    return run


class TestRopeGrid2dNeoxStyleTheta10000Y18X18H16D72(RopeGridTests):
    name = "rope_grid2d_neox_style_theta10000_y18_x18_h16_d72"
    reference = staticmethod(reference_rope_grid2d_neox_style_y18_x18_d72)
    interface = INTERFACE_ROPE_GRID2D_NEOX_STYLE
    axes = {"num_heads": 16, "head_dim": 72}
    constants = ("height", "width", "theta")
    HEIGHT = 18  # "y18" in the name
    WIDTH = 18  # "x18" in the name
    THETA = 10000  # "theta10000" in the name
    sha256 = "58e39e35d82e8620ad4482cbc67c27ddecd7c334bffa446dd40bf4cf0b60161b"


# RoPE of an image's patches: dimension i of each head turns with dimension i + 40. The
# first 20 pairs turn by the row, the others by the column. Of n pairs of an axis pair i
# turns by 10000 ** (-i / n) radians a place. In float32, rounded once to bfloat16.
# model:qwen2-vl-7b-vision, model:qwen2.5-vl-7b-vision
# Tolerances: those of reference_rope_grid2d_neox_style_y18_x18_d72.
def reference_rope_grid2d_neox_style_y20_x20_d80():
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

    return run


class TestRopeGrid2dNeoxStyleTheta10000Y20X20H16D80(RopeGridTests):
    name = "rope_grid2d_neox_style_theta10000_y20_x20_h16_d80"
    reference = staticmethod(reference_rope_grid2d_neox_style_y20_x20_d80)
    interface = INTERFACE_ROPE_GRID2D_NEOX_STYLE
    axes = {"num_heads": 16, "head_dim": 80}
    constants = ("height", "width", "theta")
    HEIGHT = 20  # "y20" in the name
    WIDTH = 20  # "x20" in the name
    THETA = 10000  # "theta10000" in the name
    sha256 = "adce3fabcb06fdf050ab051697d0760e25b5ac9e64be2c7e2aec955508e2ca2d"


# RoPE of a video's patches: dimensions 2i and 2i + 1 of each head turn together. The
# first 22 pairs turn by the frame, the next 21 by the row, the last 21 by the column.
# Of n pairs of an axis pair i turns by 10000 ** (-i / n) radians a place. In float32,
# rounded once to bfloat16.
# Tolerances: those of reference_rope_grid2d_neox_style_y18_x18_d72.
def reference_rope_grid3d_gptj_style_theta10000_t22_y21_x21():
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

    return run


class RopeGrid3dGptjStyleTheta10000T22Y21X21Base(RopeGridTests):
    reference = staticmethod(reference_rope_grid3d_gptj_style_theta10000_t22_y21_x21)
    interface = INTERFACE_ROPE_GRID3D_GPTJ_STYLE
    axes = {"head_dim": 128}
    constants = ("temporal", "height", "width", "theta")
    TEMPORAL = 22  # "t22" in the name
    HEIGHT = 21  # "y21" in the name
    WIDTH = 21  # "x21" in the name
    THETA = 10000  # "theta10000" in the name

# model:wan2.1-t2v-1.3b
class TestRopeGrid3dGptjStyleTheta10000T22Y21X21H12D128(
    RopeGrid3dGptjStyleTheta10000T22Y21X21Base
):
    name = "rope_grid3d_gptj_style_theta10000_t22_y21_x21_h12_d128"
    axes = {"num_heads": 12}
    sha256 = "f759270c543644bb816dfe6efc235a086381cc9b4553b5556db4d202efd6a21b"

# model:wan2.2-ti2v-5b
class TestRopeGrid3dGptjStyleTheta10000T22Y21X21H24D128(
    RopeGrid3dGptjStyleTheta10000T22Y21X21Base
):
    name = "rope_grid3d_gptj_style_theta10000_t22_y21_x21_h24_d128"
    axes = {"num_heads": 24}
    sha256 = "88cde61cefe6f3a5d9b67f85fff1d048d375f81cbbc06841bf7cd2a38802e8b4"

# model:wan2.1-t2v-14b
class TestRopeGrid3dGptjStyleTheta10000T22Y21X21H40D128(
    RopeGrid3dGptjStyleTheta10000T22Y21X21Base
):
    name = "rope_grid3d_gptj_style_theta10000_t22_y21_x21_h40_d128"
    axes = {"num_heads": 40}
    sha256 = "f8ea061a04966936b161f55dc594a5338a90fa38ebe8d1da5236ff83eba47346"


# RoPE of a video's patches: dimensions 2i and 2i + 1 of each head turn together. The
# first 8 pairs turn by the frame, the next 28 by the row, the last 28 by the column. Of
# n pairs of an axis pair i turns by 256 ** (-i / n) radians a place. In float32,
# rounded once to bfloat16.
# model:hunyuan-video
# Tolerances: those of reference_rope_grid2d_neox_style_y18_x18_d72.
def reference_rope_grid3d_gptj_style_theta256_t8_y28_x28():
    import torch

    THETA = 256.0
    TEMPORAL = 8
    HEIGHT = 28
    WIDTH = 28


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

    return run


class TestRopeGrid3dGptjStyleTheta256T8Y28X28H24D128(RopeGridTests):
    name = "rope_grid3d_gptj_style_theta256_t8_y28_x28_h24_d128"
    reference = staticmethod(reference_rope_grid3d_gptj_style_theta256_t8_y28_x28)
    interface = INTERFACE_ROPE_GRID3D_GPTJ_STYLE
    axes = {"num_heads": 24, "head_dim": 128}
    constants = ("temporal", "height", "width", "theta")
    TEMPORAL = 8  # "t8" in the name
    HEIGHT = 28  # "y28" in the name
    WIDTH = 28  # "x28" in the name
    THETA = 256  # "theta256" in the name
    sha256 = "bb4ba0aeab8a176edff0a6050d4fa01a41eaca4d2dd6ab2275ab2c00dc00b4b4"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
