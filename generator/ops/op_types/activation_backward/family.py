"""MLPs of models that are trained: the gradients of their activations in bfloat16."""

from __future__ import annotations

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.tokens import LLAMA, tokens, tokens_fit

SILU, GELU = "silu_and_mul_backward", "gelu_tanh_backward"
# kind and length: models
WIDTHS = {
    (SILU, 8192): ("llama-3.2-1b",),
    (SILU, 12288): ("qwen3-8b",),
    (SILU, 14336): ("llama-3.1-8b",),
    (GELU, 3072): ("gpt2",),
    (GELU, 6400): ("gpt2-xl",),
}
_WHAT = {
    SILU: "Gradients of silu(gate) * up, of the gate in the first half of a row and of up"
    " in the second, as the input has them.",
    GELU: "Gradient of x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2.",
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(width_spec(*key, models) for key, models in WIDTHS.items())


def width_spec(kind: str, size: int, models: tuple[str, ...]) -> Spec:
    """Return the definition for one activation and length."""
    gated = kind == SILU
    rows = ("num_tokens", "intermediate_size")
    wide = ("num_tokens", "gate_up_size") if gated else rows
    both = {"gate_up_size": Axis("Length of a row: gate and up.", 2 * size)}
    return Spec(
        name=f"{kind}_i{size}",
        description=f"{_WHAT[kind]} In float32, rounded once to bfloat16.",
        op_type="activation_backward",
        tags=(*(f"model:{model}" for model in models), "mode:training"),
        axes={
            "num_tokens": Axis("Number of tokens of a batch."),
            "intermediate_size": Axis("Length of an output row.", size),
            **(both if gated else {}),
        },
        inputs={
            "grad_output": Tensor(rows, "bfloat16", "Gradient of the output."),
            "input": Tensor(wide, "bfloat16", "What the activation was applied to."),
        },
        outputs={"grad_input": Tensor(wide, "bfloat16", "Gradient of the input.")},
        constraints=("gate_up_size == 2 * intermediate_size",) * gated,
        reference=reference_text("activation_backward", kind),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=tokens,
        fits=tokens_fit,
    )
