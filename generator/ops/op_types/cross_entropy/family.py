"""Losses of models that are trained."""

from __future__ import annotations

import random

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.tokens import LLAMA

_IGNORED, _MOST_BYTES = -100, 2**27
FORWARD, BACKWARD = "cross_entropy", "cross_entropy_backward"
# vocabulary: models, whether z-loss is part of the loss
VOCABULARIES = {
    50_257: (("gpt2", "gpt2-xl"), False),
    100_352: (("olmo-2-7b",), True),
    128_256: (("llama-3.2-1b", "llama-3.1-8b"), False),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        loss_spec(kind, size, *others)
        for kind in (FORWARD, BACKWARD)
        for size, others in VOCABULARIES.items()
    )


def loss_spec(kind: str, size: int, models: tuple[str, ...], z_loss: bool) -> Spec:
    """Return the definition of a loss, or of its gradient, for one vocabulary."""
    rows, tokens = ("num_tokens", "vocab_size"), ("num_tokens",)
    inputs = {
        "logits": Tensor(rows, "bfloat16", "A row's logits."),
        "labels": Tensor(tokens, "int64", "The token to come; -100: none is asked."),
    }
    lse = Tensor(tokens, "float32", "Natural logarithm of the sum of exponentials.")
    if kind == BACKWARD:
        grad = Tensor(tokens, "float32", "Gradient of each token's loss.")
        inputs = {"grad_losses": grad, **inputs, "lse": lse}
        outputs = {"grad_logits": Tensor(rows, "bfloat16", "Gradient of the logits.")}
        what = (
            "Gradient of cross-entropy for the logits, from the log-sum-exp of the"
            " forward pass: 0 for tokens whose label is -100. In float32, rounded once"
            " to bfloat16."
        )
    else:
        losses = Tensor(tokens, "float32", "Each token's loss, 0 where none is asked.")
        outputs = {"losses": losses, "lse": lse}
        what = (
            "Cross-entropy of each token: log-sum-exp of the logits less the label's"
            " logit, 0 where the label is -100. In float32."
        )
    added = " The loss has 1e-05 * lse^2 added (z-loss)." if z_loss else ""
    word = "_zloss" if z_loss else ""
    return Spec(
        name=f"{kind}{word}_v{size}",
        description=what + added,
        op_type="cross_entropy",
        tags=(*(f"model:{model}" for model in models), "mode:training"),
        axes={
            "num_tokens": Axis("Tokens of a batch, or of a chunk of one."),
            "vocab_size": Axis("Tokens of the vocabulary.", size),
        },
        inputs=inputs,
        outputs=outputs,
        reference=reference_text("cross_entropy", kind, ["zloss"] * z_loss),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=labels_of,
        fits=rows_fit,
    )


def labels_of(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return a chunk of a batch: a fifth of the labels are of a prompt, and ignored."""
    tokens, size = captured.axes["M"], spec.const("vocab_size")
    labels = [
        _IGNORED if rng.random() < 0.2 else rng.randrange(size) for _ in range(tokens)
    ]
    labels[-1] = rng.randrange(size)
    return Structure({"num_tokens": tokens}, {"labels": labels})


def rows_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether float32 rows are those of a chunk, as fused losses compute them."""
    return 4 * captured.axes["M"] * spec.const("vocab_size") <= _MOST_BYTES
