"""Encoders of images and transformers of videos, whose patches stand on a grid."""

from __future__ import annotations

import random
from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.tokens import LLAMA


@dataclass(frozen=True)
class Grid:
    """The constants of one definition; pairs turn by time, row and column."""

    heads: int
    dim: int
    theta: int
    pairs: tuple[int, ...]
    models: tuple[str, ...]


GRIDS = (
    Grid(16, 80, 10_000, (20, 20), ("qwen2-vl-7b-vision", "qwen2.5-vl-7b-vision")),
    Grid(16, 72, 10_000, (18, 18), ("qwen3-vl-8b-vision",)),
    Grid(12, 128, 10_000, (22, 21, 21), ("wan2.1-t2v-1.3b",)),
    Grid(24, 128, 10_000, (22, 21, 21), ("wan2.2-ti2v-5b",)),
    Grid(40, 128, 10_000, (22, 21, 21), ("wan2.1-t2v-14b",)),
    Grid(24, 128, 256, (8, 28, 28), ("hunyuan-video",)),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(grid_spec(grid) for grid in GRIDS)


def grid_spec(grid: Grid) -> Spec:
    """Return the definition for one set of constants."""
    is_video = len(grid.pairs) == 3
    sizes = ("frames", "rows", "columns")[-len(grid.pairs) :]
    shape = (*sizes, "num_heads", "head_dim")
    if is_video:
        sections = "_t{}_y{}_x{}".format(*grid.pairs)
        kind, style = "rope_grid3d", "gptj_style"
        what = (
            "RoPE of a video's patches: dimensions 2i and 2i + 1 of each head turn"
            " together. The first {} pairs turn by the frame, the next {} by the row,"
            " the last {} by the column."
        ).format(*grid.pairs)
    else:
        sections = "_y{}_x{}".format(*grid.pairs)
        kind, style = "rope_grid2d", "neox_style"
        what = (
            "RoPE of an image's patches: dimension i of each head turns with dimension i"
            f" + {grid.dim // 2}. The first {grid.pairs[0]} pairs turn by the row, the"
            f" others by the column."
        )
    names = {"t": "temporal", "y": "height", "x": "width"}
    constants = dict(zip(list(names)[-len(grid.pairs) :], grid.pairs, strict=True))
    text = {names[key].upper(): value for key, value in constants.items()}
    return Spec(
        name=f"{kind}_{style}_theta{grid.theta}{sections}_h{grid.heads}_d{grid.dim}",
        description=(
            f"{what} Of n pairs of an axis pair i turns by {grid.theta} ** (-i / n)"
            " radians a place. In float32, rounded once to bfloat16."
        ),
        op_type="rope_grid",
        tags=tuple(f"model:{model}" for model in grid.models),
        axes={
            **{name: Axis(f"{name.capitalize()} of patches.") for name in sizes},
            "num_heads": Axis("Number of heads.", grid.heads),
            "head_dim": Axis("Length of a head.", grid.dim),
        },
        inputs={
            "q": Tensor(shape, "bfloat16", "Queries of the patches."),
            "k": Tensor(shape, "bfloat16", "Keys of the patches."),
        },
        outputs={
            "q_out": Tensor(shape, "bfloat16", "The turned queries."),
            "k_out": Tensor(shape, "bfloat16", "The turned keys."),
        },
        reference=reference_text("rope_grid", kind, THETA=float(grid.theta), **text),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=grid_of,
        fits=grid_fits,
    )


def grid_of(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return a grid of about as many patches as the captured gemm had rows."""
    patches = captured.axes["M"]
    frames = min(21, -(-patches // 200)) if "frames" in spec.axes else 1
    rows = max(1, round((0.6 * patches / frames) ** 0.5))
    columns = -(-patches // (frames * rows))
    return Structure({"frames": frames, "rows": rows, "columns": columns})


def grid_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether there are more than a few patches."""
    return captured.axes["M"] >= 12
