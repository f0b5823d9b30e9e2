"""Exchanges between GPUs that share a model: sums behind products, logits, tokens."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.collectives import SPEC
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure
from generator.ops.workloads.tokens import DEEPSEEK, LLAMA, QWEN

ALL_REDUCE, ALL_GATHER, SCATTER = "allreduce", "allgather", "reduce_scatter"
_LLAMA_70B = ("llama-3.1-70b", "llama-3.3-70b")
_QWEN_235B = ("qwen3-235b-a22b", "qwen3-vl-235b-a22b")
_DEEPSEEK = ("deepseek-v3", "deepseek-r1", "deepseek-v3.2")
# kind, ranks, length of a whole row, models, whose batches
ROWS = (
    (ALL_REDUCE, 2, 2048, ("qwen3-30b-a3b",), QWEN),
    (ALL_REDUCE, 4, 4096, _QWEN_235B, QWEN),
    (ALL_REDUCE, 4, 8192, _LLAMA_70B, LLAMA),
    (ALL_REDUCE, 8, 4096, _QWEN_235B, QWEN),
    (ALL_REDUCE, 8, 7168, (*_DEEPSEEK, "kimi-k2"), DEEPSEEK),
    (ALL_REDUCE, 8, 8192, _LLAMA_70B, LLAMA),
    (ALL_GATHER, 2, 151936, ("qwen3-30b-a3b",), QWEN),
    (ALL_GATHER, 4, 128256, _LLAMA_70B, LLAMA),
    (ALL_GATHER, 4, 151936, _QWEN_235B, QWEN),
    (ALL_GATHER, 8, 128256, _LLAMA_70B, LLAMA),
    (ALL_GATHER, 8, 129280, _DEEPSEEK, DEEPSEEK),
    (ALL_GATHER, 8, 151936, _QWEN_235B, QWEN),
    # behind layers whose attention is replicated over data
    (SCATTER, 8, 4096, _QWEN_235B, QWEN),
    (SCATTER, 8, 7168, (*_DEEPSEEK, "kimi-k2"), DEEPSEEK),
)
_KINDS = {
    ALL_REDUCE: (
        "The sum of the partial sums of {ranks} ranks, as behind the embedding and each"
        " row-parallel layer: added in float32 and rounded to bfloat16 once; kernels that"
        " round in between differ by that. One tensor holds what all ranks have; in"
        " serving each has its own, and all get the sum."
    ),
    ALL_GATHER: (
        "The columns of {ranks} ranks side by side, as the logits of a vocabulary that"
        " they share: rank r has columns r * shard_size to (r + 1) * shard_size - 1. Bits"
        " are copied, none is computed. One tensor holds what all ranks have; in serving"
        " each has its own, and all get the rows."
    ),
    SCATTER: (
        "The sum of the partial sums of {ranks} ranks, of which rank r keeps tokens r *"
        " tokens_per_rank to (r + 1) * tokens_per_rank - 1: added in float32 and rounded"
        " to bfloat16 once; kernels that round in between differ by that. One tensor holds"
        " what all ranks have, and one what all of them keep."
    ),
}
_PARTS = ("world_size", "num_tokens", "hidden_size")


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(collective_spec(*row) for row in ROWS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's.

    Nor is there one for a vocabulary that its ranks fill up: they cut off the rest.
    """
    kind, (ranks, size) = name.partition("_tp")[0], (sizes["tp"], sizes["h"])
    if kind not in _KINDS or (kind == ALL_GATHER and size % ranks):
        return None
    return collective_spec(kind, ranks, size, (model,), LLAMA)


def collective_spec(
    kind: str, ranks: int, size: int, models: tuple[str, ...], captured: str
) -> Spec:
    """Return the definition of a kind for a number of ranks and a length of rows."""
    name = f"{kind}_tp{ranks}_h{size}"
    parts = Tensor(_PARTS, "bfloat16", "What each rank adds, of the same tokens.")
    outputs = {
        ALL_REDUCE: ("reduced", ("num_tokens", "hidden_size"), "The sum."),
        ALL_GATHER: ("gathered", ("num_tokens", "hidden_size"), "Whole rows."),
        SCATTER: (
            "scattered",
            ("world_size", "tokens_per_rank", "hidden_size"),
            "What each rank keeps.",
        ),
    }
    output, shape, what = outputs[kind]
    inputs = {"partial_sums": parts}
    if kind == ALL_GATHER:
        shards = ("world_size", "num_tokens", "shard_size")
        inputs = {"shards": Tensor(shards, "bfloat16", "Each rank's columns.")}
    return Spec(
        name=name,
        description=_KINDS[kind].format(ranks=ranks),
        op_type="collectives",
        tags=(
            *(f"model:{model}" for model in models),
            f"tp:{ranks}",
            *SPEC.kernel_tags(name),
        ),
        axes={
            "world_size": Axis("Number of ranks.", ranks),
            "num_tokens": Axis("Number of tokens."),
            "hidden_size": Axis("Length of a whole row.", size),
            **_AXES.get(kind, lambda size: {})(size // ranks),
        },
        inputs=inputs,
        outputs={output: Tensor(shape, "bfloat16", what)},
        reference=reference_text("collectives", kind),
        captured_from=captured,
        captured_op_type="gemm",
        constraints=_CONSTRAINTS.get(kind, ()),
        structure=_tokens,
        fits=_fits,
    )


_AXES = {
    ALL_GATHER: lambda share: {"shard_size": Axis("Columns of a rank.", share)},
    SCATTER: lambda share: {"tokens_per_rank": Axis("Tokens that a rank keeps.")},
}
_CONSTRAINTS = {
    ALL_GATHER: ("shard_size == hidden_size // world_size",),
    SCATTER: ("num_tokens == world_size * tokens_per_rank",),
}


def _tokens(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return as many tokens as the captured product had rows, of each rank in parts."""
    rows = captured.axes["M"]
    if "tokens_per_rank" not in spec.axes:
        return Structure({"num_tokens": rows})
    axes = {"num_tokens": spec.const("world_size") * rows, "tokens_per_rank": rows}
    return Structure(axes)


def _fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a float32 copy of what all ranks have fits in memory."""
    ranks = 1 if "shard_size" in spec.axes else spec.const("world_size")
    rows = captured.axes["M"] * (ranks if "tokens_per_rank" in spec.axes else 1)
    return 4 * rows * ranks * spec.const("hidden_size") <= MEMORY_LIMIT
