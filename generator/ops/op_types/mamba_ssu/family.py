"""Selective state update of Mamba 2: decode."""

from __future__ import annotations

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.mamba_ssu import workloads
from generator.ops.reference_text import reference_text

# Nemotron-H 8B, whole and in two tensor-parallel halves: heads, groups, parallelism.
SHARDS = ((128, 8, 1), (64, 4, 2))
HEAD_DIM = 64
DSTATE = 128

ROWS = ("batch_size", "nheads", "head_dim")
GROUPS = ("batch_size", "ngroups", "dstate")
POOL = ("state_cache_size", "nheads", "head_dim", "dstate")


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(update_spec(*shard) for shard in SHARDS)


def update_spec(nheads: int, ngroups: int, tp: int) -> Spec:
    """Return the definition for one set of constants."""
    return Spec(
        name=f"mamba_ssu_decode_h{nheads}_d{HEAD_DIM}_s{DSTATE}_ng{ngroups}",
        description=(
            "Selective state update of Mamba 2, one token a sequence: with step ="
            " softplus(dt + dt_bias) the state becomes state * exp(A * step) + step * x"
            " * B, and the output is its product with C, plus D * x."
            f" {nheads} heads share {ngroups} groups of B and C. States lie in a pool;"
            " a row of slot -1 is padding: it gives output 0 and no state is written."
        ),
        op_type="mamba_ssu",
        tags=(
            "stage:decode",
            "model:nemotron-h-8b",
            "fi_api:flashinfer.mamba.selective_state_update",
            f"tp:{tp}",
        ),
        axes={
            "batch_size": Axis("Number of sequences, padding included."),
            "state_cache_size": Axis("Slots of the pool, used or not."),
            "nheads": Axis("Heads.", nheads),
            "head_dim": Axis("Length of a head.", HEAD_DIM),
            "dstate": Axis("Length of the state of one dimension.", DSTATE),
            "ngroups": Axis("Groups of heads that share B and C.", ngroups),
        },
        inputs=_inputs(),
        outputs={
            "output": Tensor(ROWS, "bfloat16", "Output, 0 for a row of slot -1."),
            "new_state": Tensor(
                POOL, "bfloat16", "The pool after the update; other slots as before."
            ),
        },
        constraints=("nheads % ngroups == 0", "state_cache_size >= batch_size"),
        reference=reference_text("mamba_ssu", "mamba_ssu_decode"),
        captured_from="fused_add_rmsnorm_h4096",
        captured_op_type="rmsnorm",
        structure=workloads.slots,
        fits=workloads.states_fit,
    )


def _inputs() -> dict[str, Tensor]:
    same = "The same for all dimensions of a head."
    return {
        "state": Tensor(POOL, "bfloat16", "Pool of states."),
        "x": Tensor(ROWS, "bfloat16", "Input of each sequence."),
        "dt": Tensor(ROWS, "bfloat16", f"Step before bias and softplus. {same}"),
        "A": Tensor(
            ("nheads", "head_dim", "dstate"),
            "float32",
            "Decay, negative. The same for all elements of a head's state.",
        ),
        "B": Tensor(GROUPS, "bfloat16", "What of the input enters the state."),
        "C": Tensor(GROUPS, "bfloat16", "What of the state the output reads."),
        "D": Tensor(
            ("nheads", "head_dim"), "bfloat16", f"Weight of the skip connection. {same}"
        ),
        "dt_bias": Tensor(
            ("nheads", "head_dim"), "bfloat16", f"Bias of the step. {same}"
        ),
        "state_batch_indices": Tensor(
            ("batch_size",),
            "int32",
            "Each sequence's slot of the pool, -1 for padding.",
        ),
    }
