"""Norms of models that are trained: their gradients in bfloat16."""

from __future__ import annotations

from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.tokens import LLAMA, tokens, tokens_fit

RMS, LAYER = "rmsnorm_backward", "layernorm_backward"
ROWS, COLUMNS = ("num_tokens", "hidden_size"), ("hidden_size",)
_FORMULAS = {
    RMS: "x * rsqrt(mean(x^2) + {eps}) * weight",
    LAYER: "(x - mean(x)) * rsqrt(var(x) + {eps}) * weight + bias",
}


@dataclass(frozen=True)
class BackwardNorm:
    """The constants of one definition; `word` is what its name says of eps."""

    kind: str
    hidden_size: int
    model: str
    eps: float = 1e-05
    word: str = "_eps_1em5"


NORMS = (
    BackwardNorm(RMS, 2048, "llama-3.2-1b"),
    BackwardNorm(RMS, 4096, "llama-3.1-8b"),
    BackwardNorm(RMS, 4096, "qwen3-8b", 1e-06, "_eps_1em6"),
    BackwardNorm(LAYER, 768, "gpt2"),
    BackwardNorm(LAYER, 1600, "gpt2-xl"),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(norm_spec(norm) for norm in NORMS)


def norm_spec(norm: BackwardNorm) -> Spec:
    """Return the definition for one set of constants."""
    formula = _FORMULAS[norm.kind].format(eps=norm.eps)
    gradients = {
        "grad_input": Tensor(ROWS, "bfloat16", "Gradient of the rows."),
        "grad_weight": Tensor(COLUMNS, "bfloat16", "Gradient of the scale."),
    }
    if norm.kind == LAYER:
        gradients["grad_bias"] = Tensor(COLUMNS, "bfloat16", "Gradient of the bias.")
    return Spec(
        name=f"{norm.kind}{norm.word}_h{norm.hidden_size}",
        description=(
            f"Gradients of {formula}, as training needs them: of the rows, and of the"
            " parameters summed over all tokens. In float32, each rounded once to"
            " bfloat16. What the forward pass normalised by is computed again."
        ),
        op_type="norm_backward",
        tags=(f"model:{norm.model}", "mode:training"),
        axes={
            "num_tokens": Axis("Number of tokens of a batch."),
            "hidden_size": Axis("Length of a row.", norm.hidden_size),
        },
        inputs={
            "grad_output": Tensor(ROWS, "bfloat16", "Gradient of the norm's output."),
            "hidden_states": Tensor(ROWS, "bfloat16", "The rows x that it normalised."),
            "weight": Tensor(COLUMNS, "bfloat16", "Scale of each column."),
        },
        outputs=gradients,
        reference=reference_text("norm_backward", norm.kind, EPS=norm.eps),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=tokens,
        fits=tokens_fit,
    )
