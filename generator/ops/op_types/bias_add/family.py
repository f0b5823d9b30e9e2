"""Biases of projections, which every row of a product gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.tokens import LLAMA, QWEN, tokens, tokens_fit

ROWS = ("num_tokens", "features")
# features: the projection, the models that have it, whose batches its workloads are
SIZES = {
    1280: ("queries, values and outputs of attention", ("whisper-large-v3",), LLAMA),
    2880: ("attention outputs", ("gpt-oss-120b", "gpt-oss-20b"), QWEN),
    4608: ("queries, keys and values", ("qwen2.5-7b",), QWEN),
    5120: ("queries, keys and values", ("gpt-oss-120b", "gpt-oss-20b"), QWEN),
    14336: ("queries, keys and values", ("glm-4.6",), QWEN),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(bias_spec(size, *item) for size, item in SIZES.items())


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec:
    """Return the definition of a name for a model."""
    return bias_spec(sizes["n"], "a projection", (model,), LLAMA)


def bias_spec(size: int, use: str, models: tuple[str, ...], captured_from: str) -> Spec:
    """Return the definition for one number of features."""
    return Spec(
        name=f"bias_add_n{size}",
        description=(
            f"Bias add of {use}: each row of the input plus the bias, rounded once to"
            " bfloat16."
        ),
        op_type="bias_add",
        tags=tuple(f"model:{model}" for model in models),
        axes={
            "num_tokens": Axis("Number of rows."),
            "features": Axis("Length of a row and of the bias.", size),
        },
        inputs={
            "input": Tensor(ROWS, "bfloat16", "Rows of a product."),
            "bias": Tensor(("features",), "bfloat16", "Added to each row."),
        },
        outputs={"output": Tensor(ROWS, "bfloat16", "The sums.")},
        reference=reference_text("bias_add", "bias_add"),
        captured_from=captured_from,
        captured_op_type="gemm",
        structure=tokens,
        fits=tokens_fit,
    )
