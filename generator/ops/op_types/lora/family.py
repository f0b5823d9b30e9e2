"""Adapters of models that SGLang serves, many at a time."""

from __future__ import annotations

import random

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.tokens import LLAMA, tokens_fit

SHRINK, EXPAND = "lora_shrink", "lora_expand"
# kind, rank, features in or out: models
ADAPTERS = {
    (SHRINK, 16, 4096): ("llama-3.1-8b", "qwen3-8b"),
    (SHRINK, 64, 4096): ("llama-3.1-8b", "qwen3-8b"),
    (SHRINK, 16, 14336): ("llama-3.1-8b",),
    (SHRINK, 16, 12288): ("qwen3-8b",),
    (SHRINK, 16, 8192): ("llama-3.1-70b",),
    (EXPAND, 16, 4096): ("llama-3.1-8b", "qwen3-8b"),
    (EXPAND, 64, 4096): ("llama-3.1-8b", "qwen3-8b"),
    (EXPAND, 16, 1024): ("llama-3.1-8b", "qwen3-8b"),
    (EXPAND, 16, 14336): ("llama-3.1-8b",),
    (EXPAND, 16, 12288): ("qwen3-8b",),
    (EXPAND, 16, 8192): ("llama-3.1-70b",),
}
_SLOTS = " A token whose slot is none of the adapters' has none"


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(adapter_spec(*sizes, models) for sizes, models in ADAPTERS.items())


def adapter_spec(kind: str, rank: int, features: int, models: tuple[str, ...]) -> Spec:
    """Return the definition of one step for one rank."""
    slots = Tensor(("num_tokens",), "int32", "Each token's adapter.")
    if kind == SHRINK:
        rows = ("num_tokens", "in_features")
        axes = {"in_features": Axis("Input features.", features)}
        inputs = {
            "x": Tensor(rows, "bfloat16", "What the layer is given."),
            "weights": Tensor(
                ("num_adapters", "rank", "in_features"), "bfloat16", "The matrices A."
            ),
            "slots": slots,
        }
        output = Tensor(("num_tokens", "rank"), "bfloat16", "Rows of the rank.")
        what = "Rows times the transposed matrix A of each token's adapter."
        none = ", and a row of zeros."
    else:
        rows = ("num_tokens", "out_features")
        axes = {"out_features": Axis("Output features.", features)}
        inputs = {
            "x": Tensor(("num_tokens", "rank"), "bfloat16", "Rows of the rank."),
            "weights": Tensor(
                ("num_adapters", "out_features", "rank"), "bfloat16", "The matrices B."
            ),
            "slots": slots,
            "scalings": Tensor(("num_adapters",), "float32", "Each adapter's factor."),
            "base": Tensor(rows, "bfloat16", "What the layer gives without adapters."),
        }
        output = Tensor(rows, "bfloat16", "What it gives with them.")
        what = (
            "The base layer's output plus rows of the rank times the transposed matrix B"
            " of each token's adapter, times the adapter's factor."
        )
        none = ", and keeps the base's row."
    word = "k" if kind == SHRINK else "n"
    return Spec(
        name=f"{kind}_r{rank}_{word}{features}",
        description=f"{what}{_SLOTS}{none} In float32, rounded once to bfloat16.",
        op_type="lora",
        tags=tuple(f"model:{model}" for model in models),
        axes={
            "num_tokens": Axis("Number of tokens."),
            "num_adapters": Axis("Adapters that are loaded."),
            "rank": Axis("Rank of the adapters.", rank),
            **axes,
        },
        inputs=inputs,
        outputs={"output": output},
        reference=reference_text("lora", kind),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=batch,
        fits=tokens_fit,
    )


def batch(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return as many tokens as the captured gemm had rows, and two to eight adapters."""
    return Structure(
        {"num_tokens": captured.axes["M"], "num_adapters": rng.choice((2, 4, 8))}
    )
