"""Embeddings of models that are trained: the gradients of their tables in bfloat16."""

from __future__ import annotations

import random

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure, fits_a_blob
from generator.ops.workloads.tokens import LLAMA

# vocabulary and length of a row: models
TABLES = {
    (50_257, 768): ("gpt2",),
    (50_257, 1600): ("gpt2-xl",),
}
_COMMON = 200


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(table_spec(*sizes, models) for sizes, models in TABLES.items())


def table_spec(vocab_size: int, hidden_size: int, models: tuple[str, ...]) -> Spec:
    """Return the definition for one table."""
    return Spec(
        name=f"embedding_backward_v{vocab_size}_h{hidden_size}",
        description=(
            "Gradient of an embedding's table: each token's row gets the sum of the"
            " gradients of the places where the token stands, all other rows zeros."
            " Summed in float32, rounded once to bfloat16."
        ),
        op_type="embedding_backward",
        tags=(*(f"model:{model}" for model in models), "mode:training"),
        axes={
            "num_tokens": Axis("Number of tokens of a batch."),
            "vocab_size": Axis("Rows of the table.", vocab_size),
            "hidden_size": Axis("Length of a row.", hidden_size),
        },
        inputs={
            "grad_output": Tensor(
                ("num_tokens", "hidden_size"), "bfloat16", "Gradient of the output."
            ),
            "input_ids": Tensor(("num_tokens",), "int64", "The tokens."),
        },
        outputs={
            "grad_weight": Tensor(
                ("vocab_size", "hidden_size"), "bfloat16", "Gradient of the table."
            )
        },
        reference=reference_text(
            "embedding_backward", "embedding_backward", VOCAB_SIZE=vocab_size
        ),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=text,
        fits=text_fits,
    )


def text(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return tokens of a text: every second one is among the most frequent."""
    count, size = captured.axes["M"], spec.const("vocab_size")
    ids = [rng.randrange(_COMMON if rng.random() < 0.5 else size) for _ in range(count)]
    return Structure({"num_tokens": count}, {"input_ids": ids})


def text_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the int64 tokens fit in a blob."""
    return fits_a_blob(8 * captured.axes["M"])
