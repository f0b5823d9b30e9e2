"""Cases of gated delta nets: short and long memory, and sequences around a chunk."""

from __future__ import annotations

from typing import Any

from generator.ops.limit_cases import lengthened
from generator.ops.op_types.gdn.names import FADES
from kernel_judge.definition import LIMITS, Case

# sums of squares of about the 1e-6 that stands beside them before they are normalised
FAINT: dict[str, Any] = {"q_length": 1e-4, "k_length": 1e-4}


def decode_cases(drafts: bool, l2norm: bool) -> list[Case]:
    """Return the cases of decode, or of several drafts at a time."""

    def case(name: str, size: str, batch: int, tokens: int = 4, **params: Any) -> Case:
        # more slots than rows, so that a slot read as a row shows
        axes = {"seq_len": tokens, "pool_size": batch + 2} if drafts else {}
        return Case(name, size, {"batch_size": batch, **axes}, params)

    many = case("past-limits", LIMITS, 131, 5, dt_mean=2.0)
    return [
        many if drafts else lengthened(many, "batch_size", 131),
        case("one-sequence", "small", 1),
        case("three-sequences", "small", 3, 2, scale=0.2),
        case("default-scale", "small", 2, scale=None),
        case("zero-scale", "small", 2, scale=0.0),
        case("no-buffer" if drafts else "no-state", "small", 2, optional=False),
        # g about exp(-2); softplus around 20, where kernels switch to the identity
        case("short-memory", "small", 2, dt_mean=2.0),
        case("linear-softplus", "small", 2, dt_mean=20.0, A_mean=-5.0),
        case("batch", "medium", 8, 6, q_length=0.5),
        case("large-batch", "large", 24 if drafts else 96, q_length=0.5),
        *([case("faint", "small", 3, **FAINT)] if l2norm else []),
    ]


def prefill_cases(l2norm: bool) -> list[Case]:
    """Return sequences shorter and longer than a kernel's chunk of 64 tokens.

    Kernels multiply keys and values in bfloat16. Where keys are zero, nothing of that is
    left in the states, and what they keep in float32 shows: gates and states.
    """

    def case(name: str, size: str, *lengths: int, **params: Any) -> Case:
        axes = {
            "total_seq_len": sum(lengths),
            "num_seqs": len(lengths),
            "len_cu_seqlens": len(lengths) + 1,
        }
        return Case(name, size, axes, {"lengths": lengths, **params})

    return [
        case("past-limits", LIMITS, 8_200, *[1] * 66, dt_mean=2.0),
        case("one-token", "small", 1, scale=None),
        case("around-a-chunk", "small", 63, 64, 65),
        case("an-empty-sequence", "small", 5, 0, 9, scale=0.2),
        case("no-state", "small", 70, 3, scale=0.0, optional=False),
        case("short-memory", "small", 40, 17, dt_mean=2.0),
        case("linear-softplus", "small", 33, dt_mean=20.0, A_mean=-5.0),
        # rates of e^3: bfloat16 rounds their logarithms by up to 2^-7
        case(FADES, "small", 64, 31, k_length=0.0, A_mean=3.0, dt_mean=-6.0),
        case("ragged", "medium", 300, 1, 129, 17, scale=None, q_length=0.5),
        case("long-memory", "medium", 400, dt_mean=-6.0),
        case("long-sequences", "large", 2500, 64, 1, 1300, dt_mean=-5.0),
        *([case("faint", "small", 33, 2, **FAINT)] if l2norm else []),
    ]
