"""MLPs without a gate: encoders of images and audio, embedders, earlier language models."""

from __future__ import annotations

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.tokens import LLAMA, tokens, tokens_fit

ROWS = ("num_tokens", "intermediate_size")
GELU, TANH, QUICK = "gelu", "gelu_tanh", "quick_gelu"
_FORMULAS = {
    GELU: "x * (1 + erf(x / sqrt(2))) / 2",
    TANH: "x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2",
    QUICK: "x * sigmoid(1.702 * x)",
}
# kind, length of a row: models
WIDTHS = {
    (GELU, 4096): ("bge-large-en-v1.5", "bert-large"),
    (GELU, 5120): ("whisper-large-v3",),
    (GELU, 18176): ("falcon-7b",),
    (GELU, 24576): ("gpt-neox-20b",),
    (TANH, 3072): ("gpt2",),
    (TANH, 4304): ("siglip-so400m", "gemma-3-27b-vision", "qwen3-vl-8b-vision"),
    (TANH, 6400): ("gpt2-xl",),
    (TANH, 12288): ("starcoder2-3b",),
    (TANH, 13824): ("wan2.1-t2v-14b",),
    (QUICK, 3072): ("clip-vit-large-patch14-text",),
    (QUICK, 4096): ("clip-vit-large-patch14",),
    (QUICK, 5120): ("qwen2-vl-7b-vision",),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        activation_spec(kind, size, models) for (kind, size), models in WIDTHS.items()
    )


def activation_spec(kind: str, size: int, models: tuple[str, ...]) -> Spec:
    """Return the definition of one activation for one length of rows."""
    return Spec(
        name=f"{kind}_i{size}",
        description=(
            f"Activation of an MLP without a gate: {_FORMULAS[kind]}. In float32, rounded"
            " once to bfloat16."
        ),
        op_type="plain_activation",
        tags=tuple(f"model:{model}" for model in models),
        axes={
            "num_tokens": Axis("Number of tokens, or of patches of images."),
            "intermediate_size": Axis("Length of a row.", size),
        },
        inputs={"x": Tensor(ROWS, "bfloat16", "Rows of the up projection.")},
        outputs={"output": Tensor(ROWS, "bfloat16", "Rows for the down projection.")},
        reference=reference_text("plain_activation", kind),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=tokens,
        fits=tokens_fit,
    )
