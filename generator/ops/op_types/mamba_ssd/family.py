"""State space duality of Mamba 2: prefill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.mamba_ssd import workloads
from generator.ops.reference_text import reference_text

# Nemotron-H 8B, whole and in two tensor-parallel halves: heads, groups, parallelism.
SHARDS = ((128, 8, 1), (64, 4, 2))
MODEL = "nemotron-h-8b"
HEAD_DIM, DSTATE = 64, 128

ROWS = ("total_tokens", "nheads", "head_dim")
GROUPS = ("total_tokens", "ngroups", "dstate")
STATES = ("num_seqs", "nheads", "head_dim", "dstate")


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        prefill_spec(heads, HEAD_DIM, DSTATE, groups, MODEL, tp)
        for heads, groups, tp in SHARDS
    )


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec:
    """Return the definition of a name for a model."""
    return prefill_spec(sizes["h"], sizes["d"], sizes["s"], sizes["ng"], model)


def prefill_spec(
    nheads: int, head_dim: int, dstate: int, ngroups: int, model: str, tp: int = 1
) -> Spec:
    """Return the definition for one set of constants."""
    return Spec(
        name=f"mamba_ssd_prefill_h{nheads}_d{head_dim}_s{dstate}_ng{ngroups}",
        description=(
            "State space of Mamba 2 over several sequences, whose tokens stand one after"
            " another. Token by token, with step = softplus(dt + dt_bias), a sequence's"
            " state becomes state * exp(A * step) + step * x * B, and the output is its"
            f" product with C, plus D * x. {nheads} heads share {ngroups} groups of B"
            " and C."
        ),
        op_type="mamba_ssd",
        tags=("stage:prefill", f"model:{model}", f"tp:{tp}"),
        axes={
            "total_tokens": Axis("Tokens of all sequences."),
            "num_seqs": Axis("Number of sequences."),
            "len_cu_seqlens": Axis("Number of sequences + 1."),
            "nheads": Axis("Heads.", nheads),
            "head_dim": Axis("Length of a head.", head_dim),
            "dstate": Axis("Length of the state of one dimension.", dstate),
            "ngroups": Axis("Groups of heads that share B and C.", ngroups),
        },
        inputs=_inputs(),
        outputs={
            "output": Tensor(ROWS, "bfloat16", "Output of each token."),
            "new_state": Tensor(
                STATES, "float32", "State behind each sequence's last token."
            ),
        },
        constraints=(
            "nheads % ngroups == 0",
            "len_cu_seqlens == num_seqs + 1",
            "total_tokens == cu_seqlens[-1].item()",
        ),
        reference=reference_text("mamba_ssd", "mamba_ssd_prefill"),
        captured_from="gqa_ragged_prefill_causal_h32_kv4_d128",
        captured_op_type="gqa_ragged",
        structure=workloads.sequences,
        fits=workloads.states_fit,
    )


def _inputs() -> dict[str, Tensor]:
    heads = ("nheads",)
    return {
        "x": Tensor(ROWS, "bfloat16", "Input of each token."),
        "dt": Tensor(
            ("total_tokens", "nheads"), "bfloat16", "Step before bias and softplus."
        ),
        "A": Tensor(heads, "float32", "Decay of each head, negative."),
        "B": Tensor(GROUPS, "bfloat16", "What of the input enters the state."),
        "C": Tensor(GROUPS, "bfloat16", "What of the state the output reads."),
        "D": Tensor(heads, "float32", "Weight of the skip connection."),
        "dt_bias": Tensor(heads, "float32", "Bias of the step."),
        "state": Tensor(STATES, "float32", "State before each sequence's first token."),
        "cu_seqlens": Tensor(
            ("len_cu_seqlens",),
            "int32",
            "Sequence b's tokens: cu_seqlens[b]:cu_seqlens[b + 1].",
        ),
    }
