"""The end of a tensor-parallel block: all-reduce, residual addition and RMS norm."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure

ROWS = ("num_tokens", "hidden_size")


@dataclass(frozen=True)
class Block:
    """The constants of one definition: a model's width and the number of ranks.

    `word` is what its name says of eps.
    """

    world_size: int
    hidden_size: int
    models: tuple[str, ...]
    eps: float
    word: str = ""


BLOCKS = (
    Block(2, 8192, ("llama-3.1-70b",), 1e-05),
    Block(2, 2048, ("qwen3-30b-a3b",), 1e-06),
    Block(8, 7168, ("deepseek-v3", "deepseek-r1"), 1e-06),
    Block(4, 8192, ("llama-3.1-70b", "llama-3.3-70b"), 1e-05, "_eps_1em5"),
    Block(4, 4096, ("qwen3-235b-a22b", "qwen3-vl-235b-a22b"), 1e-06, "_eps_1em6"),
    Block(8, 8192, ("llama-3.1-70b", "llama-3.3-70b"), 1e-05, "_eps_1em5"),
    Block(8, 4096, ("qwen3-235b-a22b", "qwen3-vl-235b-a22b"), 1e-06, "_eps_1em6"),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(block_spec(block) for block in BLOCKS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec:
    """Return the definition of a name for a model."""
    word = name.partition("_tp")[0].removeprefix("allreduce_add_rmsnorm")
    eps = constants["eps"]
    return block_spec(Block(sizes["tp"], sizes["h"], (model,), eps, word))


def block_spec(block: Block) -> Spec:
    """Return the definition for one set of constants."""
    return Spec(
        name=(
            f"allreduce_add_rmsnorm{block.word}_tp{block.world_size}"
            f"_h{block.hidden_size}"
        ),
        description=(
            f"What {block.world_size} ranks of tensor parallelism compute behind a "
            "row-parallel layer: x = sum of the ranks' partial sums + residual, and its "
            f"RMS norm x * rsqrt(mean(x^2) + {block.eps}) * weight, in float32, both "
            "rounded to bfloat16 at the end. One tensor holds the partial sums of all "
            "ranks; in serving each rank has its own, and all get the same outputs."
        ),
        op_type="comm",
        tags=(
            *(f"model:{model}" for model in block.models),
            f"tp:{block.world_size}",
            "fused",
            "fi_api:flashinfer.comm.allreduce_fusion",
        ),
        axes={
            "world_size": Axis("Ranks that add up.", block.world_size),
            "num_tokens": Axis("Number of tokens."),
            "hidden_size": Axis("Length of a row.", block.hidden_size),
        },
        inputs={
            "hidden_states": Tensor(
                ("world_size", *ROWS), "bfloat16", "Partial sums of each rank."
            ),
            "residual": Tensor(ROWS, "bfloat16", "Added once to the sum over ranks."),
            "weight": Tensor(("hidden_size",), "bfloat16", "Scale of each column."),
        },
        outputs={
            "output": Tensor(ROWS, "bfloat16", "The normalised rows."),
            "residual_out": Tensor(ROWS, "bfloat16", "The rows before the norm."),
        },
        reference=reference_text("comm", "allreduce_add_rmsnorm", EPS=block.eps),
        captured_from="fused_add_rmsnorm_h4096",
        captured_op_type="rmsnorm",
        structure=_tokens,
        fits=_fits,
    )


def _tokens(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return as many tokens as the captured norm had rows."""
    return Structure({"num_tokens": captured.axes["batch_size"]})


def _fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a float32 copy of the partial sums fits in memory."""
    width = spec.const("world_size") * spec.const("hidden_size")
    return 4 * captured.axes["batch_size"] * width <= MEMORY_LIMIT
