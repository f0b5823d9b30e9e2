"""Residual streams of models: the sum where no norm is fused with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.tokens import DEEPSEEK, LLAMA, QWEN, tokens, tokens_fit

ROWS = ("num_tokens", "hidden_size")
# hidden_size: the models that have it, and whose batches its workloads are
SIZES = {
    1280: (("whisper-large-v3",), LLAMA),
    2048: (("qwen3-30b-a3b", "qwen3-next-80b-a3b", "llama-3.2-1b"), QWEN),
    2880: (("gpt-oss-120b", "gpt-oss-20b"), QWEN),
    4096: (("llama-3.1-8b", "qwen3-8b"), LLAMA),
    5376: (("gemma-3-27b",), LLAMA),
    7168: (("deepseek-v3", "deepseek-r1", "kimi-k2"), DEEPSEEK),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(residual_spec(size, *models) for size, models in SIZES.items())


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec:
    """Return the definition of a name for a model."""
    return residual_spec(sizes["h"], (model,), LLAMA)


def residual_spec(size: int, models: tuple[str, ...], captured_from: str) -> Spec:
    """Return the definition for one length of rows."""
    return Spec(
        name=f"residual_add_h{size}",
        description=(
            "Residual add: hidden_states + residual, rounded once to bfloat16. Layers"
            " whose next norm is not fused with the sum have it, as before a last norm"
            " or between a norm's output and the stream."
        ),
        op_type="residual_add",
        tags=tuple(f"model:{model}" for model in models),
        axes={
            "num_tokens": Axis("Number of tokens."),
            "hidden_size": Axis("Length of a row.", size),
        },
        inputs={
            "hidden_states": Tensor(ROWS, "bfloat16", "What a layer adds."),
            "residual": Tensor(ROWS, "bfloat16", "The residual stream."),
        },
        outputs={"output": Tensor(ROWS, "bfloat16", "The new residual stream.")},
        reference=reference_text("residual_add", "residual_add"),
        captured_from=captured_from,
        captured_op_type="gemm",
        structure=tokens,
        fits=tokens_fit,
    )
