"""Models with experts: the last step of SGLang's fused experts."""

from __future__ import annotations

import random

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.tokens import DEEPSEEK, LLAMA, QWEN, tokens_fit

# experts of a token, hidden_size: models, whose batches, routed_scaling_factor
SUMS = {
    (2, 4096): (("mixtral-8x7b",), LLAMA, 1.0),
    (2, 6144): (("mixtral-8x22b",), LLAMA, 1.0),
    (4, 2880): (("gpt-oss-120b", "gpt-oss-20b"), QWEN, 1.0),
    (8, 2048): (("qwen3-30b-a3b",), QWEN, 1.0),
    (8, 3072): (("minimax-m2",), QWEN, 1.0),
    (8, 4096): (("qwen3-235b-a22b",), QWEN, 1.0),
    (8, 5120): (("glm-4.6",), QWEN, 2.5),
    (8, 7168): (("deepseek-v3", "deepseek-r1"), DEEPSEEK, 2.5),
    (10, 2048): (("qwen3-next-80b-a3b",), QWEN, 1.0),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        sum_spec(top_k, hidden, *others) for (top_k, hidden), others in SUMS.items()
    )


def sum_spec(
    top_k: int, hidden: int, models: tuple[str, ...], batches: str, factor: float
) -> Spec:
    """Return the definition for one length of rows."""

    def batch(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
        axes = {"num_tokens": captured.axes["M"]}
        return Structure(axes, scalars={"routed_scaling_factor": factor})

    return Spec(
        name=f"moe_sum_k{top_k}_h{hidden}",
        description=(
            f"Sum of the rows that a token's {top_k} experts return, which are weighted"
            " already, times routed_scaling_factor. In float32, rounded once to bfloat16."
        ),
        op_type="moe_sum",
        tags=tuple(f"model:{model}" for model in models),
        axes={
            "num_tokens": Axis("Number of tokens."),
            "topk": Axis("Experts of a token.", top_k),
            "hidden_size": Axis("Length of a row.", hidden),
        },
        inputs={
            "expert_output": Tensor(
                ("num_tokens", "topk", "hidden_size"), "bfloat16", "A row an expert."
            ),
            "routed_scaling_factor": Tensor(None, "float32", "Factor of the sum."),
        },
        outputs={
            "output": Tensor(("num_tokens", "hidden_size"), "bfloat16", "The sums.")
        },
        reference=reference_text("moe_sum", "moe_sum"),
        captured_from=batches,
        captured_op_type="gemm",
        structure=batch,
        fits=tokens_fit,
    )
