"""Greedy sampling over the vocabularies of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.sampling.workloads import probabilities_fit
from generator.ops.reference_text import reference_text

VOCABULARIES = {
    128_256: ("llama-3.1-8b", "llama-3.1-70b", "llama-3.2-1b", "llama-3.2-3b"),
    129_280: ("deepseek-v3", "deepseek-r1", "deepseek-v3.2"),
    151_936: ("qwen3-8b", "qwen3-30b-a3b", "qwen3-next-80b-a3b"),
    201_088: ("gpt-oss-120b", "gpt-oss-20b"),
    262_208: ("gemma-3-27b",),
}
ROWS = ("batch_size", "vocab_size")


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(argmax_spec(*item) for item in VOCABULARIES.items())


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec:
    """Return the definition of a name for a model."""
    return argmax_spec(sizes["v"], (model,))


def argmax_spec(vocab_size: int, models: tuple[str, ...]) -> Spec:
    """Return the definition for one vocabulary."""
    return Spec(
        name=f"argmax_rows_v{vocab_size}",
        description=(
            "Greedy sampling: the token of each row's largest logit. Of several that tie"
            " the first one is taken; logits of minus infinity are of masked tokens."
        ),
        op_type="argmax",
        tags=tuple(f"model:{model}" for model in models),
        axes={
            "batch_size": Axis("Number of sequences."),
            "vocab_size": Axis("Tokens of the vocabulary.", vocab_size),
        },
        inputs={"logits": Tensor(ROWS, "float32", "A row's logits.")},
        outputs={"tokens": Tensor(("batch_size",), "int64", "The chosen tokens.")},
        reference=reference_text("argmax", "argmax_rows"),
        captured_from="fused_add_rmsnorm_h4096",
        captured_op_type="rmsnorm",
        fits=probabilities_fit,
    )
