"""Activations in the MLPs of dense models and experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.activation.workloads import rows_fit, tokens
from generator.ops.reference_text import reference_text

# Captured gemms whose rows are a batch's tokens: in Llama's it is the very product
# whose output the activation reads.
DEEPSEEK = "gemm_n256_k7168"
LLAMA = "gemm_n28672_k4096"
QWEN = "gemm_n2048_k4096"


@dataclass(frozen=True)
class Width:
    """The constants of one definition; `models` are those that have the width."""

    intermediate_size: int
    models: tuple[str, ...]
    use: str
    captured_from: str
    kind: str = "silu_and_mul"


@dataclass(frozen=True)
class ActivationKind:
    """One activation: what it is of a row's halves, and how they lie.

    `kernel` is FlashInfer's function, empty where it has none.
    """

    formula: str
    layout: str
    kernel: str = ""


_HALVES = "The first {size} columns of a row are the gate, the other {size} the up projection."
KINDS = {
    "silu_and_mul": ActivationKind(
        "silu(gate) * up with silu(x) = x * sigmoid(x)", _HALVES, "silu_and_mul"
    ),
    "gelu_and_mul": ActivationKind(
        "gelu(gate) * up with gelu(x) = x * (1 + erf(x / sqrt(2))) / 2",
        _HALVES,
        "gelu_and_mul",
    ),
    "gelu_tanh_and_mul": ActivationKind(
        "gelu(gate) * up with gelu(x) = x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 *"
        " x^3))) / 2",
        _HALVES,
        "gelu_tanh_and_mul",
    ),
    "swiglu_oai": ActivationKind(
        "g * sigmoid(1.702 * g) * (u + 1) with g = min(gate, 7) and u = up between -7"
        " and 7",
        "The even columns of a row are the gate, the odd ones the up projection.",
    ),
    "swiglu_clamp10": ActivationKind(
        "silu(g) * u with silu(x) = x * sigmoid(x), g = min(gate, 10) and u = up between"
        " -10 and 10",
        _HALVES,
    ),
    "relu2": ActivationKind("the square of max(x, 0)", ""),
}


_TOGETHER = "gate and up together"
_INPUT = {
    "swiglu_oai": "Each row's pairs of gate and up projection.",
    "relu2": "Rows to square.",
}
DENSE = "dense layers"
EXPERT = "an expert"
BOTH = "dense layers and of an expert"
_LLAMA_70B = ("llama-3.1-70b", "llama-3.3-70b")
WIDTHS = (
    Width(512, ("qwen3-next-80b-a3b",), EXPERT, QWEN),
    Width(768, ("qwen3-30b-a3b",), EXPERT, QWEN),
    Width(1536, ("minimax-m2", "qwen3-235b-a22b"), EXPERT, QWEN),
    Width(2048, ("deepseek-v3", "deepseek-r1", "kimi-k2"), EXPERT, DEEPSEEK),
    Width(3584, _LLAMA_70B, f"{DENSE} on one of 8 devices", LLAMA),
    Width(7168, _LLAMA_70B, f"{DENSE} on one of 4 devices", LLAMA),
    Width(8192, ("llama-3.2-3b", "llama-4-scout", "llama-4-maverick"), BOTH, LLAMA),
    Width(11008, ("smollm3-3b",), DENSE, LLAMA),
    Width(12288, ("qwen3-8b",), DENSE, QWEN),
    Width(12800, ("granite-4.1-8b",), DENSE, LLAMA),
    Width(14336, ("llama-3.1-8b",), DENSE, LLAMA),
    Width(16384, ("mixtral-8x22b",), EXPERT, LLAMA),
    Width(17408, ("qwen3-14b",), DENSE, QWEN),
    Width(17920, ("phi-4-14b",), DENSE, LLAMA),
    Width(18432, ("deepseek-v3", "deepseek-r1", "kimi-k2"), DENSE, DEEPSEEK),
    Width(18944, ("qwen2.5-7b",), DENSE, QWEN),
    Width(25600, ("qwen3-32b",), DENSE, QWEN),
    Width(28672, _LLAMA_70B, DENSE, LLAMA),
    Width(29568, ("qwen2.5-72b",), DENSE, QWEN),
    Width(53248, ("llama-3.1-405b",), DENSE, LLAMA),
    Width(1152, ("modernbert-base",), DENSE, QWEN, "gelu_and_mul"),
    Width(14336, ("gemma-2-9b",), DENSE, LLAMA, "gelu_tanh_and_mul"),
    Width(21504, ("gemma-3-27b",), DENSE, LLAMA, "gelu_tanh_and_mul"),
    Width(36864, ("gemma-2-27b",), DENSE, LLAMA, "gelu_tanh_and_mul"),
    Width(2880, ("gpt-oss-120b", "gpt-oss-20b"), EXPERT, QWEN, "swiglu_oai"),
    Width(2048, ("deepseek-v4-flash",), EXPERT, DEEPSEEK, "swiglu_clamp10"),
    Width(21504, ("nemotron-h-8b",), DENSE, LLAMA, "relu2"),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(activation_spec(width) for width in WIDTHS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    kind = name.rpartition("_")[0]
    if kind not in KINDS:
        return None
    return activation_spec(Width(sizes["i"], (model,), "an MLP", LLAMA, kind))


def activation_spec(width: Width) -> Spec:
    """Return the definition for one kind and intermediate size."""
    size, kind = width.intermediate_size, KINDS[width.kind]
    gated = bool(kind.layout)
    axis = "gate_up_size" if gated else "intermediate_size"
    return Spec(
        name=f"{width.kind}_i{size}",
        description=_description(width, kind),
        op_type="activation",
        tags=(
            *(f"model:{model}" for model in width.models),
            *([f"fi_api:flashinfer.activation.{kind.kernel}"] * bool(kind.kernel)),
        ),
        axes={
            "num_tokens": Axis("Number of rows."),
            "intermediate_size": Axis(
                "Length of gate and of up." if gated else "Length of a row.", size
            ),
            **(
                {"gate_up_size": Axis(f"Length of a row: {_TOGETHER}.", 2 * size)}
                if gated
                else {}
            ),
        },
        inputs={
            "input": Tensor(
                ("num_tokens", axis),
                "bfloat16",
                _INPUT.get(width.kind, "Each row's gate, then its up projection."),
            )
        },
        outputs={
            "output": Tensor(
                ("num_tokens", "intermediate_size"),
                "bfloat16",
                kind.formula.partition(" with ")[0],
            )
        },
        constraints=("gate_up_size == 2 * intermediate_size",) * gated,
        reference=reference_text("activation", width.kind),
        captured_from=width.captured_from,
        captured_op_type="gemm",
        structure=tokens,
        fits=rows_fit,
    )


def _description(width: Width, kind: ActivationKind) -> str:
    gated = "Gated activation" if kind.layout else "Activation"
    layout = kind.layout.format(size=width.intermediate_size)
    return (
        f"{gated} of {width.use}: {kind.formula}.{' ' * bool(layout)}{layout} In"
        " float32, rounded to bfloat16 at the end."
    )
