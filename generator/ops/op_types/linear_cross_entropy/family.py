"""Losses of models that are trained, from the last layer's output on."""

from __future__ import annotations

import random

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.tokens import LLAMA

FORWARD, BACKWARD = "linear_cross_entropy", "linear_cross_entropy_backward"
_MOST_BYTES = 2**27
# a gradient of more is compared on no CPU in seconds
_MOST_WEIGHTS = 2**27
# vocabulary, hidden_size: models, whether z-loss is part of the loss
HEADS = {
    (50_257, 768): (("gpt2",), False),
    (50_257, 1600): (("gpt2-xl",), False),
    (100_352, 2048): (("olmo-2-1b",), True),
    (128_256, 2048): (("llama-3.2-1b",), False),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        loss_spec(kind, size, hidden, models, z_loss)
        for kind in (FORWARD, BACKWARD)
        for (size, hidden), (models, z_loss) in HEADS.items()
        if kind == FORWARD or size * hidden <= _MOST_WEIGHTS
    )


def loss_spec(
    kind: str, size: int, hidden: int, models: tuple[str, ...], z_loss: bool
) -> Spec:
    """Return the definition of a loss, or of its gradients, for one head."""
    tokens, rows = ("num_tokens",), ("num_tokens", "hidden_size")
    weights = ("vocab_size", "hidden_size")
    inputs = {
        "hidden_states": Tensor(rows, "bfloat16", "The last layer's output."),
        "weight": Tensor(weights, "bfloat16", "A row a token of the vocabulary."),
        "labels": Tensor(tokens, "int64", "The token to come; below 0: none is asked."),
    }
    lse = Tensor(tokens, "float32", "Natural logarithm of the sum of exponentials.")
    if kind == BACKWARD:
        grad = Tensor(tokens, "float32", "Gradient of each token's loss.")
        inputs = {"grad_losses": grad, **inputs, "lse": lse}
        outputs = {
            "grad_hidden_states": Tensor(rows, "bfloat16", "Of the hidden states."),
            "grad_weight": Tensor(weights, "bfloat16", "Of the weight."),
        }
        what = (
            "Gradients of the cross-entropy of hidden_states times weight, from the"
            " log-sum-exp of the forward pass. Logits and their gradient stay in float32,"
            " and each output is rounded once to bfloat16."
        )
    else:
        losses = Tensor(tokens, "float32", "Each token's loss, 0 where none is asked.")
        outputs = {"losses": losses, "lse": lse}
        what = (
            "Cross-entropy of each token from hidden_states times weight: log-sum-exp of"
            " the logits less the label's logit. Logits stay in float32: a kernel needs"
            " no more than a block of them at a time."
        )
    what += " Tokens with a label below 0, of which PyTorch's is -100, are ignored."
    added = " The loss has 1e-05 * lse^2 added (z-loss)." if z_loss else ""
    return Spec(
        name=f"{kind}{'_zloss' if z_loss else ''}_v{size}_h{hidden}",
        description=what + added,
        op_type="linear_cross_entropy",
        tags=(*(f"model:{model}" for model in models), "mode:training"),
        axes={
            "num_tokens": Axis("Tokens of a batch, or of a chunk of one."),
            "vocab_size": Axis("Tokens of the vocabulary.", size),
            "hidden_size": Axis("Length of a row.", hidden),
        },
        inputs=inputs,
        outputs=outputs,
        reference=reference_text("linear_cross_entropy", kind, ["zloss"] * z_loss),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=chunk,
        fits=chunk_fits,
    )


def chunk(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return as many tokens as the captured gemm had rows."""
    return Structure({"num_tokens": captured.axes["M"]})


def chunk_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether float32 logits are those of a chunk, as fused losses have them."""
    return 4 * captured.axes["M"] * spec.const("vocab_size") <= _MOST_BYTES
