"""Models with lightning attention: MiniMax, and Ring's linear ones."""

from __future__ import annotations

import random

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.tokens import LLAMA

DECODE, PREFILL = "lightning_decode", "lightning_prefill"
# heads of one GPU, their length: models, tp
HEADS = {
    (64, 128): (("minimax-m1", "minimax-text-01"), 1),
    (8, 128): (("minimax-m1", "minimax-text-01"), 8),
    (16, 128): (("ring-mini-linear-2.0",), 1),
}
_MOST_TOKENS, _MOST_SEQUENCES = 1024, 64


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        heads_spec(kind, heads, dim, models, tp)
        for kind in (DECODE, PREFILL)
        for (heads, dim), (models, tp) in HEADS.items()
    )


def heads_spec(
    kind: str, heads: int, dim: int, models: tuple[str, ...], tp: int
) -> Spec:
    """Return the definition of one stage for so many heads."""
    is_decode = kind == DECODE
    rows = ("batch_size", "num_heads", *(() if is_decode else ("seq_len",)), "head_dim")
    axes = {"batch_size": Axis("Number of sequences.")}
    if not is_decode:
        axes["seq_len"] = Axis("Tokens of each.")
    state = Tensor(
        ("batch_size", "num_heads", "head_dim", "head_dim"),
        "float32",
        "Each head's state: keys by values.",
    )

    def batch(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
        rows = captured.axes["M"]
        if is_decode:
            return Structure({"batch_size": rows})
        return Structure({"batch_size": rng.choice((1, 2)), "seq_len": rows})

    return Spec(
        name=f"{kind}_h{heads}_d{dim}",
        description=(
            "Lightning attention, "
            + ("one token of each sequence" if is_decode else "whole prompts")
            + ": for each token state = exp(-slope) * state + k v^T, and output = q state,"
            " with a slope of each head. Nothing is scaled. In float32, the output rounded"
            " once to bfloat16."
        ),
        op_type="lightning_attention",
        tags=(
            *(f"model:{model}" for model in models),
            *([f"tp:{tp}"] if tp > 1 else []),
        ),
        axes={
            **axes,
            "num_heads": Axis("Number of heads.", heads),
            "head_dim": Axis("Length of a head.", dim),
        },
        inputs={
            "q": Tensor(rows, "bfloat16", "Queries."),
            "k": Tensor(rows, "bfloat16", "Keys."),
            "v": Tensor(rows, "bfloat16", "Values."),
            "state": state,
            "slopes": Tensor(("num_heads",), "float32", "Decay of each head, over 0."),
        },
        outputs={
            "output": Tensor(rows, "bfloat16", "What is read of the states."),
            "new_state": Tensor(
                state.shape, "float32", "States behind the last token."
            ),
        },
        reference=reference_text("lightning_attention", kind),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=batch,
        fits=rows_fit,
    )


def rows_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a batch decodes so many sequences, or a prompt has so many tokens."""
    most = _MOST_TOKENS if "seq_len" in spec.axes else _MOST_SEQUENCES
    return captured.axes["M"] <= most
