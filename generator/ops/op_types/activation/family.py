"""SiLU of the gate times the up projection, in the MLPs of dense models and experts."""

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
    """Name the constants of one definition; `models` are those that have the width."""

    intermediate_size: int
    models: tuple[str, ...]
    use: str
    captured_from: str


DENSE = "dense layers"
EXPERT = "an expert"
BOTH = "dense layers and of an expert"
WIDTHS = (
    Width(512, ("qwen3-next-80b-a3b",), EXPERT, QWEN),
    Width(768, ("qwen3-30b-a3b",), EXPERT, QWEN),
    Width(1536, ("minimax-m2", "qwen3-235b-a22b"), EXPERT, QWEN),
    Width(2048, ("deepseek-v3", "deepseek-r1", "kimi-k2"), EXPERT, DEEPSEEK),
    Width(8192, ("llama-3.2-3b", "llama-4-scout", "llama-4-maverick"), BOTH, LLAMA),
    Width(12288, ("qwen3-8b",), DENSE, QWEN),
    Width(14336, ("llama-3.1-8b",), DENSE, LLAMA),
    Width(16384, ("mixtral-8x22b",), EXPERT, LLAMA),
    Width(17408, ("qwen3-14b",), DENSE, QWEN),
    Width(17920, ("phi-4-14b",), DENSE, LLAMA),
    Width(18432, ("deepseek-v3", "deepseek-r1", "kimi-k2"), DENSE, DEEPSEEK),
    Width(18944, ("qwen2.5-7b",), DENSE, QWEN),
    Width(25600, ("qwen3-32b",), DENSE, QWEN),
    Width(28672, ("llama-3.1-70b", "llama-3.3-70b"), DENSE, LLAMA),
    Width(29568, ("qwen2.5-72b",), DENSE, QWEN),
    Width(53248, ("llama-3.1-405b",), DENSE, LLAMA),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(activation_spec(width) for width in WIDTHS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    if not name.startswith("silu_and_mul_"):
        return None
    return activation_spec(Width(sizes["i"], (model,), "an MLP", LLAMA))


def activation_spec(width: Width) -> Spec:
    """Return the definition for one intermediate size."""
    size = width.intermediate_size
    return Spec(
        name=f"silu_and_mul_i{size}",
        description=(
            f"Gated activation of {width.use}: silu(gate) * up with silu(x) ="
            f" x * sigmoid(x). The first {size} columns of a row are the gate, the other"
            f" {size} the up projection. In float32, rounded to bfloat16 at the end."
        ),
        op_type="activation",
        tags=(
            *(f"model:{model}" for model in width.models),
            "fi_api:flashinfer.activation.silu_and_mul",
        ),
        axes={
            "num_tokens": Axis("Number of rows."),
            "intermediate_size": Axis("Length of gate and of up.", size),
            "gate_up_size": Axis("Length of a row: gate and up together.", 2 * size),
        },
        inputs={
            "input": Tensor(
                ("num_tokens", "gate_up_size"),
                "bfloat16",
                "Each row's gate, then its up projection.",
            )
        },
        outputs={
            "output": Tensor(
                ("num_tokens", "intermediate_size"), "bfloat16", "silu(gate) * up"
            )
        },
        constraints=("gate_up_size == 2 * intermediate_size",),
        reference=reference_text("activation", "silu_and_mul"),
        captured_from=width.captured_from,
        captured_op_type="gemm",
        structure=tokens,
        fits=rows_fit,
    )
